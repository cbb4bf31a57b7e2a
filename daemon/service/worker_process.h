#pragma once

#include "base/closer.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "loader/worker.h"

#include <thread>

#include <sys/types.h>

namespace btfd::service {

/// A worker that runs. Whoever owns it waits for `process` to become readable and then calls `reap`.
struct WorkerProcess {
  pid_t pid = 0;
  /// A pidfd.
  UniqueFd process;
  /// The front's end, non-blocking. In it may lie descriptors that the worker has sent.
  UniqueFd channel;
};

/// Forks workers, in a thread that has a table of descriptors of its own.
///
/// A worker closes what it inherits. If that were what clients have sent, it could wait for a client (base/closer.h)
/// before it has begun; but no descriptor of a client is ever in that thread's table.
class WorkerForker {
 public:
  WorkerForker() = default;
  WorkerForker(const WorkerForker&) = delete;
  WorkerForker& operator=(const WorkerForker&) = delete;

  /// Workers end with it (PR_SET_PDEATHSIG).
  ~WorkerForker();

  /// To be called while the process has no descriptors of clients.
  Result<void> start();

  [[nodiscard]] bool started() const { return thread_.joinable(); }

  /// Forks a worker, whose channel `closer` is to close, if there is one. No other thread but the caller's, which
  /// waits, and the Closer's may run meanwhile, as the child goes on with what it finds in memory.
  Result<WorkerProcess> fork(const loader::WorkerSetup& setup, Closer* closer);

 private:
  void run(BorrowedFd control) const;
  [[nodiscard]] Result<int> receiveNumber() const;

  UniqueFd control_;
  const loader::WorkerSetup* setup_ = nullptr; ///< Of the worker that is being forked.
  std::thread thread_;
};

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
