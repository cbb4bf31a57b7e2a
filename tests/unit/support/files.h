#pragma once

#include "base/unique_fd.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace btfd::test_support {

/// A directory of the test's own, removed with all that is in it at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_((std::filesystem::temp_directory_path() / "btfd-test-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) {
      throw std::runtime_error("cannot make " + path_ + ": " + std::strerror(errno));
    }
  }

  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  TemporaryDirectory(TemporaryDirectory&&) = delete;
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;

  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::string& path() const { return path_; }

  [[nodiscard]] std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

inline std::vector<std::byte> bytesOf(std::string_view text) {
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

inline void writeFile(const std::string& path, std::span<const std::byte> content) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size())); // NOLINT
  ASSERT_TRUE(file.good()) << path;
}

inline void writeFile(const std::string& path, std::string_view content) {
  writeFile(path, std::as_bytes(std::span(content)));
}

inline std::vector<std::byte> readFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return bytesOf(std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()));
}

/// A memfd that holds `content`, with `seals` (F_ADD_SEALS).
inline UniqueFd memfdOf(std::span<const std::byte> content, int seals = 0) {
  UniqueFd memfd(::memfd_create("btfd-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::write(memfd.get(), content.data(), content.size()), static_cast<ssize_t>(content.size()));
  if (seals != 0) {
    EXPECT_EQ(::fcntl(memfd.get(), F_ADD_SEALS, seals), 0);
  }
  return memfd;
}

inline UniqueFd memfdOf(std::string_view content, int seals = 0) {
  return memfdOf(std::as_bytes(std::span(content)), seals);
}

/// The number of descriptors that this process has open.
inline std::size_t openDescriptors() {
  // One of them is the iterator's own.
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                                std::filesystem::directory_iterator())) -
         1;
}

} // namespace btfd::test_support
