#include "worker_process.h"

#include "loader/channel.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace btfd::service {

Result<WorkerProcess> forkWorker(const loader::WorkerSetup& setup) {
  auto channel = loader::makeChannel();
  if (!channel) {
    return std::unexpected(std::move(channel.error()));
  }
  // A signal that came before the child has dropped the front's handlers would look to the front like one of its own.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0) {
    loader::runWorker(std::move(channel->worker), setup);
  }
  const int forkError = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    return failErrno("cannot fork a worker", forkError);
  }
  WorkerProcess worker{.pid = pid,
                       .process = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
                       .channel = std::move(channel->front)};
  if (!worker.process || ::fcntl(worker.channel.get(), F_SETFL, O_NONBLOCK) < 0) {
    const int error = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return failErrno("cannot watch a worker", error);
  }
  return worker;
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
