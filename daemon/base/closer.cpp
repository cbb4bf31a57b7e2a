#include "closer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

namespace btfd {

namespace {

/// Only files that live in memory can be sealed: the kernel closes them without asking anybody.
bool cannotBlock(int descriptor) {
  return ::fcntl(descriptor, F_GET_SEALS) >= 0;
}

/// Blocks all signals, also for threads that are made meanwhile: they are for the other threads of the process.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }

  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

/// Wakes a thread out of a wait; ends nothing.
constexpr int kInterrupt = SIGUSR2;

bool prepareInterrupt() {
  struct sigaction action{};
  action.sa_handler = [](int) {};                        // NOLINT(cppcoreguidelines-pro-type-union-access)
  return ::sigaction(kInterrupt, &action, nullptr) == 0; // not SA_RESTART, though close(2) is not restarted anyway
}

void allowInterrupt() {
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, kInterrupt);
  ::pthread_sigmask(SIG_UNBLOCK, &interrupt, nullptr);
}

/// The next number, or -1 when there are no more.
int readNumber(BorrowedFd pipe) {
  int number = -1;
  ssize_t got = -1;
  do {
    got = ::read(pipe.get(), &number, sizeof number);
  } while (got < 0 && errno == EINTR);
  // Numbers are written whole, so they are read whole (pipe(7), PIPE_BUF).
  return got == sizeof number ? number : -1;
}

} // namespace

struct Closer::Shared {
  UniqueFd reading;
  std::atomic<std::size_t> closed = 0;

  /// The life of a thread: until the writing end is closed.
  void run() {
    allowInterrupt();
    for (int descriptor = readNumber(reading); descriptor >= 0; descriptor = readNumber(reading)) {
      ::close(descriptor);
      ++closed;
    }
  }
};

Closer::~Closer() {
  handOver();
}

Result<void> Closer::start() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0) {
    return failErrno("cannot make a pipe for descriptors to close", errno);
  }
  auto shared = std::make_shared<Shared>();
  shared->reading = UniqueFd(ends[0]);
  UniqueFd writing(ends[1]);
  // A page of numbers is plenty: what waits beyond that does so because closes block.
  ::fcntl(writing.get(), F_SETPIPE_SZ, 1);
  if (::fcntl(writing.get(), F_SETFL, O_NONBLOCK) < 0 || !prepareInterrupt()) {
    return failErrno("cannot prepare a pipe for descriptors to close", errno);
  }
  shared_ = std::move(shared);
  writing_ = std::move(writing);
  return {};
}

void Closer::close(int descriptor) noexcept {
  if (!shared_ || cannotBlock(descriptor)) {
    ::close(descriptor);
    return;
  }
  refused_.push_back(descriptor);
  handOver();
  // A thread for each descriptor, as any close may be one that does not end.
  if (pending() <= threads_.size()) {
    return;
  }
  if (threads_.size() < maximumThreads_) {
    addThread();
  } else {
    interruptThreads();
  }
}

std::size_t Closer::pending() const {
  return shared_ ? refused_.size() + handedOver_ - shared_->closed : 0;
}

/// Writes as much as the pipe takes.
void Closer::handOver() noexcept {
  const auto refusal = std::ranges::find_if(refused_, [&](int descriptor) {
    return ::write(writing_.get(), &descriptor, sizeof descriptor) != sizeof descriptor;
  });
  handedOver_ += static_cast<std::size_t>(refusal - refused_.begin());
  refused_.erase(refused_.begin(), refusal);
}

/// Without memory or tasks for one, those that are there have to do.
void Closer::addThread() noexcept {
  const SignalsBlocked blocked;
  try {
    threads_.reserve(maximumThreads_);
    std::thread thread([shared = shared_] { shared->run(); });
    threads_.push_back(thread.native_handle());
    thread.detach();                   // it ends only after this Closer
  } catch (const std::system_error&) { // NOLINT(bugprone-empty-catch): see above
  }
}

void Closer::interruptThreads() noexcept {
  for (const pthread_t thread : threads_) {
    ::pthread_kill(thread, kInterrupt);
  }
}

} // namespace btfd
