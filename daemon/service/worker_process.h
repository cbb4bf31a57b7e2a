#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "loader/worker.h"

#include <sys/types.h>

namespace btfd::service {

/// A worker that runs. Whoever owns it waits for `process` to become readable and then calls `reap`.
struct WorkerProcess {
  pid_t pid = 0;
  /// A pidfd.
  UniqueFd process;
  /// The front's end, non-blocking.
  UniqueFd channel;
};

/// Forks a worker. No other thread may run meanwhile, as the child goes on with what it finds in memory.
Result<WorkerProcess> forkWorker(const loader::WorkerSetup& setup);

/// How a worker ended.
struct WorkerEnd {
  /// 0 if it was not a signal.
  int signal = 0;
  int exitStatus = 0;

  /// As in "killed by SIGSEGV".
  [[nodiscard]] std::string text() const;
};

/// Collects a worker that has ended, so that it is no zombie.
WorkerEnd reap(const WorkerProcess& worker);

} // namespace btfd::service
