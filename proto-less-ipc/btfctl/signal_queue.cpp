#include "btfctl/signal_queue.h"

#include <cerrno>
#include <utility>

#include <unistd.h>

namespace btfd::btfctl {

Result<SignalQueue> SignalQueue::open() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) {
    ::sigaddset(&set, signal);
  }
  SignalQueue queue;
  queue.maskBefore_.emplace();
  ::sigprocmask(SIG_BLOCK, &set, &*queue.maskBefore_);
  queue.fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC));
  if (!queue.fd_) {
    return failErrno("cannot wait for signals", errno);
  }
  return queue;
}

SignalQueue::SignalQueue(SignalQueue&& other) noexcept
    : fd_(std::move(other.fd_)), maskBefore_(std::exchange(other.maskBefore_, std::nullopt)) {}

SignalQueue::~SignalQueue() {
  if (maskBefore_) {
    ::sigprocmask(SIG_SETMASK, &*maskBefore_, nullptr);
  }
}

std::optional<signalfd_siginfo> SignalQueue::next() const {
  signalfd_siginfo info{};
  const bool whole = ::read(fd_.get(), &info, sizeof(info)) == ssize_t{sizeof(info)};
  return whole ? std::optional(info) : std::nullopt;
}

} // namespace btfd::btfctl
