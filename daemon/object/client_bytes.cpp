#include "client_bytes.h"

#include "base/memfd.h"
#include "base/text.h"

#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace btfd::object {

namespace {

/// What a descriptor is instead of a regular file.
std::unexpected<Error> notRegular(mode_t mode) {
  switch (mode & S_IFMT) {
  case S_IFDIR:
    return fail("the descriptor is a directory, not an object file", EISDIR);
  case S_IFIFO:
    return fail("the descriptor is a pipe: an object has to be a regular file or a memfd", ESPIPE);
  case S_IFSOCK:
    return fail("the descriptor is a socket: an object has to be a regular file or a memfd", ESPIPE);
  default:
    return fail("the descriptor is no regular file or memfd", EINVAL);
  }
}

Result<void> readAll(BorrowedFd file, std::byte* data, std::size_t size) {
  for (std::size_t at = 0; at < size;) {
    const ssize_t got = ::pread(file.get(), data + at, size - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return failErrno("cannot read the object file", errno);
    }
    if (got == 0) {
      return fail("the object file shrank while it was read", EIO);
    }
    at += static_cast<std::size_t>(got);
  }
  return {};
}

} // namespace

Result<ClientBytes> ClientBytes::read(BorrowedFd file, std::uint64_t limit) {
  struct stat status{};
  if (::fstat(file.get(), &status) < 0) {
    return failErrno("cannot look at the object file", errno);
  }
  if (!S_ISREG(status.st_mode)) {
    return notRegular(status.st_mode);
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size == 0) {
    return fail("the object file is empty", ENODATA);
  }
  if (size > limit) {
    return fail("the object file has " + std::to_string(size) + " bytes; at most " + std::to_string(limit) +
                    " are allowed (limits.objectBytes)",
                EFBIG);
  }
  const int access = ::fcntl(file.get(), F_GETFL) & (O_ACCMODE | O_PATH);
  if ((access & O_PATH) != 0 || access == O_WRONLY) {
    return fail("the object file's descriptor is not open for reading", EBADF);
  }
  const bool immutable = isSealed(file);
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, immutable ? MAP_PRIVATE : MAP_PRIVATE | MAP_ANONYMOUS,
                        immutable ? file.get() : -1, 0);
  if (memory == MAP_FAILED) {
    return failErrno("cannot map the object file", errno);
  }
  ClientBytes bytes(static_cast<std::byte*>(memory), size, immutable);
  if (!immutable) {
    if (auto read = readAll(file, bytes.data_, size); !read) {
      return std::unexpected(std::move(read.error()));
    }
  }
  return bytes;
}

ClientBytes::ClientBytes(ClientBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), mapping_(other.mapping_) {}

ClientBytes& ClientBytes::operator=(ClientBytes&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapping_, other.mapping_);
  return *this;
}

ClientBytes::~ClientBytes() {
  if (data_ != nullptr) {
    ::munmap(data_, size_);
  }
}

std::string ClientBytes::digest() const {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned int length = 0;
  EVP_Digest(data_, size_, hash.data(), &length, EVP_sha256(), nullptr);
  return toHex(std::as_bytes(std::span(hash).first(length)));
}

} // namespace btfd::object
