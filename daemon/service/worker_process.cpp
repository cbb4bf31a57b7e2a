#include "worker_process.h"

#include "loader/channel.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace btfd::service {

namespace {

/// Leaves the calling thread a table of descriptors of its own, with the standard streams and `kept`. What is not in
/// it, it does not even close: CLOSE_RANGE_UNSHARE copies only the rest. Returns 0 or an errno value.
int keepOnly(BorrowedFd kept) {
  const auto number = static_cast<unsigned>(kept.get());
  constexpr unsigned kFirst = STDERR_FILENO + 1;
  const bool done = ::close_range(number + 1, ~0U, CLOSE_RANGE_UNSHARE) == 0 &&
                    (number <= kFirst || ::close_range(kFirst, number - 1, 0) == 0);
  return done ? 0 : errno;
}

/// No signal is for the thread that forks. One that came to a child before it has dropped the front's handlers would
/// look to the front like one of its own.
void blockSignals() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

} // namespace

WorkerForker::~WorkerForker() {
  control_.reset();
  if (thread_.joinable()) {
    thread_.join();
  }
}

Result<void> WorkerForker::start() {
  auto control = loader::makeChannel();
  if (!control) {
    return std::unexpected(std::move(control.error()));
  }
  control_ = std::move(control->front);
  thread_ = std::thread([this, number = control->worker.get()] { run(BorrowedFd(number)); });
  // The thread's end stays until the thread has its own.
  if (auto began = receiveNumber(); !began || *began != 0) {
    return failErrno("cannot give the thread that forks workers descriptors of its own", began ? *began : EIO);
  }
  return {};
}

Result<WorkerProcess> WorkerForker::fork(const loader::WorkerSetup& setup, Closer* closer) {
  auto channel = loader::makeChannel();
  if (!channel) {
    return std::unexpected(std::move(channel.error()));
  }
  setup_ = &setup;
  const std::array<BorrowedFd, 1> end{channel->worker};
  if (auto sent = loader::sendMessage(control_, {}, end); !sent) {
    return std::unexpected(std::move(sent.error()));
  }
  const auto pid = receiveNumber();
  if (!pid || *pid < 0) {
    return failErrno("cannot fork a worker", pid ? -*pid : EIO);
  }
  WorkerProcess worker{.pid = *pid,
                       .process = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0))),
                       .channel = UniqueFd(channel->front.release(), closer)};
  if (!worker.process || ::fcntl(worker.channel.get(), F_SETFL, O_NONBLOCK) < 0) {
    const int error = errno;
    ::kill(*pid, SIGKILL);
    ::waitpid(*pid, nullptr, 0);
    return failErrno("cannot watch a worker", error);
  }
  return worker;
}

/// What the thread answers: a process id, or a negative errno value.
Result<int> WorkerForker::receiveNumber() const {
  auto message = loader::ChannelReader().receive(control_);
  if (!message) {
    return std::unexpected(std::move(message.error()));
  }
  return (*message)->body.get<int>();
}

/// The thread's life: until the other end of `control` is closed.
void WorkerForker::run(BorrowedFd control) const {
  blockSignals();
  const int begun = keepOnly(control);
  static_cast<void>(loader::sendMessage(control, begun, {}));
  if (begun != 0) {
    return;
  }
  const UniqueFd own(control.get());
  loader::ChannelReader reader;
  while (auto message = reader.receive(own)) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      loader::runWorker(std::move((*message)->descriptors.front()), *setup_);
    }
    static_cast<void>(loader::sendMessage(own, pid < 0 ? -errno : pid, {}));
  }
}

WorkerEnd reap(const WorkerProcess& worker) {
  int status = 0;
  WorkerEnd end;
  if (::waitpid(worker.pid, &status, WNOHANG) != worker.pid) {
    return end;
  }
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
  } else {
    end.exitStatus = WEXITSTATUS(status);
  }
  return end;
}

std::string WorkerEnd::text() const {
  if (signal == 0) {
    return "exited with status " + std::to_string(exitStatus);
  }
  const char* name = ::sigabbrev_np(signal);
  return "killed by " + (name == nullptr ? "signal " + std::to_string(signal) : "SIG" + std::string(name));
}

} // namespace btfd::service
