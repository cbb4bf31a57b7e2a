#pragma once

#include <utility>

#include <unistd.h>

namespace btfd {

/// A file descriptor that has one owner and is closed with it. Empty when negative.
class UniqueFd {
 public:
  UniqueFd() = default;

  explicit UniqueFd(int fd) : fd_(fd) {}

  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset(std::exchange(other.fd_, -1));
    }
    return *this;
  }

  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;

  ~UniqueFd() { reset(); }

  [[nodiscard]] int get() const { return fd_; }

  explicit operator bool() const { return fd_ >= 0; }

  /// Gives up ownership: the caller closes the descriptor from now on.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

  /// Closes what is held, if anything, and holds `fd` instead.
  void reset(int fd = -1) {
    if (const int old = std::exchange(fd_, fd); old >= 0) {
      ::close(old); // Linux frees the descriptor even if close reports an error (close(2)).
    }
  }

 private:
  int fd_ = -1;
};

/// A descriptor that somebody else owns and keeps open for as long as this value is used. It says in a function's
/// signature that the descriptor is neither kept nor closed.
class BorrowedFd {
 public:
  BorrowedFd(const UniqueFd& owner) : fd_(owner.get()) {} // NOLINT(google-explicit-constructor): borrowing is harmless

  explicit BorrowedFd(int fd) : fd_(fd) {}

  [[nodiscard]] int get() const { return fd_; }

  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

} // namespace btfd
