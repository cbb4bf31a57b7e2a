#include "memfd.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace btfd {

namespace {

Result<void> writeAll(BorrowedFd file, std::span<const std::byte> content) {
  while (!content.empty()) {
    const ssize_t put = ::write(file.get(), content.data(), content.size());
    if (put < 0 && errno == EINTR) {
      continue;
    }
    if (put < 0) {
      return failErrno("cannot fill a memfd", errno);
    }
    content = content.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

} // namespace

Result<UniqueFd> sealedMemfd(const std::string& name, std::span<const std::byte> content) {
  return sealedMemfd(name, {content});
}

Result<UniqueFd> sealedMemfd(const std::string& name, std::initializer_list<std::span<const std::byte>> parts) {
  UniqueFd memfd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memfd) {
    return failErrno("cannot make a memfd", errno);
  }
  for (const auto part : parts) {
    if (auto done = writeAll(memfd, part); !done) {
      return std::unexpected(std::move(done.error()));
    }
  }
  if (::fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
    return failErrno("cannot seal a memfd", errno);
  }
  return memfd;
}

bool isSealed(BorrowedFd file) {
  constexpr int kNeeded = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  return seals >= 0 && (seals & kNeeded) == kNeeded;
}

} // namespace btfd
