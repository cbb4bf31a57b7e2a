#include "btfctl/hold.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace btfd::btfctl {
namespace {

/// Waits until one of `fds` has something to say.
Result<void> waitForAny(std::span<pollfd> fds) {
  while (::poll(fds.data(), fds.size(), -1) < 0) {
    if (errno != EINTR) {
      return failErrno("cannot wait", errno);
    }
  }
  return {};
}

/// The daemon says nothing unasked: whatever makes its socket readable is its end.
pollfd forConnection(BorrowedFd connection) {
  return {connection.get(), POLLIN | POLLRDHUP, 0};
}

/// poll(2) passes over it where there is no watch.
pollfd forWatch(const std::optional<ObjectWatch>& watch) {
  return {watch ? watch->fd().get() : -1, POLLIN, 0};
}

/// Reads what `ready` says is there. Whether the object is gone.
bool sawEnd(std::optional<ObjectWatch>& watch, const pollfd& ready) {
  if (watch && ready.revents != 0) {
    watch->read();
  }
  return watch && watch->sawEnd();
}

std::vector<std::string> environmentWith(const std::string& assignment) {
  const std::string prefix = assignment.substr(0, assignment.find('=') + 1);
  std::vector<std::string> variables{assignment};
  for (char** variable = ::environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with(prefix)) {
      variables.emplace_back(*variable);
    }
  }
  return variables;
}

/// As execve(2) wants it. Refers to `texts`.
std::vector<char*> asArguments(std::span<std::string> texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

Result<pid_t> spawn(std::span<const std::string> command, const std::string& objectId, const sigset_t& mask) {
  std::vector<std::string> arguments(command.begin(), command.end());
  std::vector<std::string> environment = environmentWith("BTFD_OBJECT=" + objectId);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigmask(&attributes, &mask);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = -1;
  const int code = ::posix_spawnp(&child, arguments.front().c_str(), nullptr, &attributes,
                                  asArguments(arguments).data(), asArguments(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  return code == 0 ? Result<pid_t>(child) : failErrno("cannot run " + command.front(), code);
}

/// A descriptor that is readable once `child` has ended; empty before Linux 5.3. By syscall(2), since glibc 2.36
/// declares pidfd_open() without C linkage.
UniqueFd openProcess(pid_t child) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
}

Result<int> statusOf(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      return failErrno("cannot wait for the command", errno);
    }
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// The kernel sends what is typed at the terminal to all of its foreground processes, the command included.
void passOn(const signalfd_siginfo& info, pid_t child) {
  if (info.ssi_code != SI_KERNEL) {
    ::kill(child, static_cast<int>(info.ssi_signo));
  }
}

} // namespace

Result<HoldEnd> holdUntilEnd(SignalQueue signals, BorrowedFd connection, std::optional<ObjectWatch>& watch) {
  while (!watch || !watch->sawEnd()) {
    std::array fds{pollfd{signals.fd().get(), POLLIN, 0}, forConnection(connection), forWatch(watch)};
    if (auto waited = waitForAny(fds); !waited) {
      return std::unexpected(std::move(waited).error());
    }
    // Taken off the queue, or it would kill the process as soon as the queue is gone.
    if (fds[0].revents != 0 && signals.next()) {
      return HoldEnd::Signal;
    }
    if (fds[1].revents != 0) {
      return HoldEnd::ConnectionLost;
    }
    sawEnd(watch, fds[2]);
  }
  return HoldEnd::Unloaded;
}

Result<int> runCommand(SignalQueue signals, std::span<const std::string> command, const std::string& objectId,
                       BorrowedFd connection, std::optional<ObjectWatch>& watch,
                       const std::function<void(HoldEnd)>& onObjectGone) {
  auto child = spawn(command, objectId, signals.maskBefore());
  if (!child) {
    return std::unexpected(std::move(child).error());
  }
  const UniqueFd ended = openProcess(*child);
  if (!ended) {
    return statusOf(*child); // Linux before 5.3
  }
  std::array fds{pollfd{ended.get(), POLLIN, 0}, pollfd{signals.fd().get(), POLLIN, 0}, forConnection(connection),
                 forWatch(watch)};
  bool gone = false;
  const auto tellOnce = [&](HoldEnd how) {
    if (!std::exchange(gone, true)) {
      onObjectGone(how);
    }
  };
  if (watch && watch->sawEnd()) {
    tellOnce(HoldEnd::Unloaded);
    fds[3].fd = -1;
  }
  while (fds[0].revents == 0) {
    if (auto waited = waitForAny(fds); !waited) {
      return std::unexpected(std::move(waited).error());
    }
    if (fds[1].revents != 0) {
      if (const auto signal = signals.next()) {
        passOn(*signal, *child);
      }
    }
    if (fds[2].revents != 0) {
      tellOnce(HoldEnd::ConnectionLost);
      fds[2].fd = -1; // poll(2) passes over it from now on
      fds[2].revents = 0;
    } else if (sawEnd(watch, fds[3])) {
      tellOnce(HoldEnd::Unloaded);
    }
    fds[3] = gone ? pollfd{-1, 0, 0} : forWatch(watch);
  }
  return statusOf(*child);
}

} // namespace btfd::btfctl
