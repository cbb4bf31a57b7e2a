#pragma once

#include <utility>

#include <unistd.h>

namespace btfd {

class Closer;

/// A file descriptor that has one owner and is closed with it. Empty when negative.
///
/// Close(2) may block for as long as somebody else likes: what comes from a client says with its Closer who closes it
/// instead, and keeps that wherever it is moved to.
class UniqueFd {
 public:
  UniqueFd() = default;

  explicit UniqueFd(int fd, Closer* closer = nullptr) : fd_(fd), closer_(closer) {}

  UniqueFd(UniqueFd&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), closer_(std::exchange(other.closer_, nullptr)) {}

  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
      closer_ = std::exchange(other.closer_, nullptr);
    }
    return *this;
  }

  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;

  ~UniqueFd() { close(); }

  [[nodiscard]] int get() const { return fd_; }

  explicit operator bool() const { return fd_ >= 0; }

  /// Who closes it, or null: then its owner does.
  [[nodiscard]] Closer* closer() const { return closer_; }

  /// Gives up ownership: the caller closes the descriptor from now on.
  [[nodiscard]] int release() {
    closer_ = nullptr;
    return std::exchange(fd_, -1);
  }

  /// Closes what is held, if anything, and holds `fd` instead.
  void reset(int fd = -1) { *this = UniqueFd(fd); }

 private:
  void close() {
    if (fd_ < 0) {
      return;
    }
    if (closer_ == nullptr) {
      ::close(fd_); // Linux frees the descriptor even if close reports an error (close(2)).
    } else {
      closeElsewhere();
    }
    fd_ = -1;
  }

  void closeElsewhere() noexcept;

  int fd_ = -1;
  Closer* closer_ = nullptr;
};

/// A descriptor that somebody else owns and keeps open for as long as this value is used. It says in a function's
/// signature that the descriptor is neither kept nor closed.
class BorrowedFd {
 public:
  BorrowedFd(const UniqueFd& owner) // NOLINT(google-explicit-constructor): borrowing is harmless
      : fd_(owner.get()), closer_(owner.closer()) {}

  explicit BorrowedFd(int fd) : fd_(fd) {}

  [[nodiscard]] int get() const { return fd_; }

  explicit operator bool() const { return fd_ >= 0; }

  /// A duplicate, which is closed as the descriptor itself is; empty, with errno, if there can be no more.
  [[nodiscard]] UniqueFd duplicate() const;

 private:
  int fd_;
  Closer* closer_ = nullptr;
};

} // namespace btfd
