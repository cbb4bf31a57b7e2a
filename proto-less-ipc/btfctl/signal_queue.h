#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <csignal>
#include <optional>

#include <sys/signalfd.h>

namespace btfd::btfctl {

/// The signals by which people and service managers end a process (SIGINT, SIGQUIT, SIGTERM, SIGHUP). While this object
/// lives they wait in a queue instead of killing the process. For a process with one thread.
class SignalQueue {
 public:
  static Result<SignalQueue> open();

  SignalQueue(SignalQueue&& other) noexcept;
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;
  SignalQueue& operator=(SignalQueue&&) = delete;
  ~SignalQueue();

  /// Readable when a signal waits.
  [[nodiscard]] BorrowedFd fd() const { return fd_; }

  /// Takes the next signal. Blocks if none waits.
  [[nodiscard]] std::optional<signalfd_siginfo> next() const;

  /// The signal mask as it was before, for processes to be started.
  [[nodiscard]] const sigset_t& maskBefore() const { return *maskBefore_; }

 private:
  SignalQueue() = default;

  UniqueFd fd_;
  /// Empty in an object that was moved from.
  std::optional<sigset_t> maskBefore_;
};

} // namespace btfd::btfctl
