#include "btfctl/output_file.h"

#include "base/unique_fd.h"

#include <cerrno>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace btfd::btfctl {
namespace {

namespace fs = std::filesystem;

Result<void> writeAll(BorrowedFd file, std::span<const std::byte> content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(file.get(), content.data(), content.size());
    if (written < 0 && errno != EINTR) {
      return failErrno("cannot write " + path, errno);
    }
    content = content.subspan(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
  return {};
}

/// A file that goes again unless it takes its place.
class NewFile {
 public:
  /// Beside `path`, so that it can be renamed to it.
  explicit NewFile(const std::string& path) : path_(path + ".XXXXXX"), file_(::mkostemp(path_.data(), O_CLOEXEC)) {}

  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  ~NewFile() {
    if (file_) {
      ::unlink(path_.c_str());
    }
  }

  [[nodiscard]] const UniqueFd& file() const { return file_; }

  Result<void> rename(const std::string& path) {
    if (::rename(path_.c_str(), path.c_str()) != 0) {
      return failErrno("cannot write " + path, errno);
    }
    file_.reset();
    return {};
  }

 private:
  std::string path_;
  UniqueFd file_;
};

/// The mode that open(2) would have given a new file.
mode_t newMode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

Result<void> replace(const std::string& path, mode_t mode, std::span<const std::byte> content) {
  NewFile made(path);
  if (!made.file()) {
    return failErrno("cannot write " + path, errno);
  }
  if (auto written = writeAll(made.file(), content, path); !written) {
    return written;
  }
  // A file system that is full may say so only now; and after a crash there must be no empty file of this name.
  if (::fchmod(made.file().get(), mode) != 0 || ::fsync(made.file().get()) != 0) {
    return failErrno("cannot write " + path, errno);
  }
  return made.rename(path);
}

} // namespace

bool isSameFile(const std::string& path, const std::string& other) {
  std::error_code ignored; // then one of them is not there
  return path != "-" && other != "-" && fs::equivalent(path, other, ignored);
}

Result<void> writeOutput(const std::string& path, std::span<const std::byte> content, std::ostream& out) {
  if (path == "-") {
    out.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size())); // NOLINT
    out.flush();
    return {};
  }
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return replace(path, newMode(), content);
  }
  if (S_ISREG(status.st_mode)) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error); // the file itself, not a link to it
    return error ? failErrno("cannot write " + path, error.value())
                 : replace(real.string(), status.st_mode & 0777, content);
  }
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file ? writeAll(file, content, path) : failErrno("cannot write " + path, errno);
}

} // namespace btfd::btfctl
