#include "btfctl/object_file.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <span>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U // Linux 6.3; glibc 2.36 does not know it
#endif

namespace btfd::btfctl {
namespace {

/// Above this a copy costs more memory than it is worth: object files have kilobytes, seldom a few megabytes.
constexpr std::size_t kLargestCopy = 64U << 20U;

/// A memfd that can be sealed. Since 6.3 the kernel wants to be told that it is not executable (and may insist on it:
/// vm.memfd_noexec); before, it refuses that flag.
Result<UniqueFd> createMemory() {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  UniqueFd memory(::memfd_create("btfctl-object", kFlags | MFD_NOEXEC_SEAL));
  if (!memory && errno == EINVAL) {
    memory.reset(::memfd_create("btfctl-object", kFlags));
  }
  if (!memory) {
    return failErrno("cannot create a memfd", errno);
  }
  return memory;
}

Result<void> writeAll(BorrowedFd to, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(to.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return failErrno("cannot write to a memfd", errno);
    }
    bytes = bytes.subspan(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> copy(BorrowedFd from, BorrowedFd to, std::string_view name) {
  std::array<std::byte, 64U << 10U> buffer; // NOLINT(cppcoreguidelines-pro-type-member-init): read() fills it
  for (std::size_t total = 0;;) {
    const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
    if (got < 0) {
      if (errno == EINTR) {
        continue;
      }
      return failErrno("cannot read " + std::string(name), errno);
    }
    if (got == 0) {
      return {};
    }
    const auto bytes = static_cast<std::size_t>(got);
    total += bytes;
    if (total > kLargestCopy) {
      return fail(std::string(name) + " is larger than 64 MiB: give so large an object as a file", EFBIG);
    }
    if (auto written = writeAll(to, std::span(buffer).first(bytes)); !written) {
      return written;
    }
  }
}

Result<UniqueFd> sealedCopy(BorrowedFd source, std::string_view name) {
  auto memory = createMemory();
  if (!memory) {
    return memory;
  }
  if (auto copied = copy(source, *memory, name); !copied) {
    return std::unexpected(std::move(copied).error());
  }
  if (::fcntl(memory->get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return failErrno("cannot seal a memfd", errno);
  }
  return memory;
}

} // namespace

Result<UniqueFd> openObject(const std::string& path) {
  if (path == "-") {
    return sealedCopy(BorrowedFd(STDIN_FILENO), "standard input");
  }
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0) {
    return failErrno("cannot open " + path, errno);
  }
  if (S_ISDIR(status.st_mode)) {
    return failErrno("cannot read " + path, EISDIR);
  }
  const bool isLargeFile = S_ISREG(status.st_mode) && status.st_size > static_cast<off_t>(kLargestCopy);
  return isLargeFile ? Result<UniqueFd>(std::move(file)) : sealedCopy(file, path);
}

Result<check::ObjectToCheck> readObject(const std::string& path) {
  const auto file = openObject(path);
  if (!file) {
    return std::unexpected(file.error());
  }
  auto object = check::ObjectToCheck::read(*file);
  if (!object) {
    return std::unexpected(std::move(object.error()).within(path));
  }
  return object;
}

} // namespace btfd::btfctl
