#pragma once

#include "error.h"
#include "unique_fd.h"

#include <cstddef>
#include <memory>
#include <vector>

#include <pthread.h>

namespace btfd {

/// Closes descriptors for a thread that must not wait.
///
/// The last close(2) of a TCP socket waits for SO_LINGER, or for those that lie unread in an AF_UNIX socket; each
/// close of a file on FUSE waits until whoever serves it has answered FLUSH. So threads of this class do it: they read
/// numbers from a pipe and close them, and nothing else. They neither allocate nor lock, so that a process may fork
/// while they run.
///
/// Where all threads are busy, they are woken out of their wait for SO_LINGER, as the kernel then closes the socket in
/// the background. So only FLUSH can use them up.
///
/// Nothing waits for a close that does not end, neither the destructor nor the end of the process. In the kernel,
/// exit_group(2) wakes a thread out of the wait for SO_LINGER. It does not wake one out of that for FLUSH, which is
/// uninterruptible: then the process stays, as a zombie with one thread, until FLUSH is answered or the file system is
/// aborted (/sys/fs/fuse/connections). That thread keeps the process's table of descriptors alive, so all that is
/// to end with the process has to be closed before.
///
/// For one thread. Outlives every UniqueFd that has it.
class Closer {
 public:
  /// Threads that there may be. Beyond that many closes that do not end, descriptors stay open until one of them does.
  static constexpr std::size_t kMaximumThreads = 32;

  explicit Closer(std::size_t maximumThreads = kMaximumThreads) : maximumThreads_(maximumThreads) {}

  Closer(const Closer&) = delete;
  Closer& operator=(const Closer&) = delete;
  ~Closer();

  /// Makes the pipe. Before, all is closed in place.
  Result<void> start();

  [[nodiscard]] bool started() const { return shared_ != nullptr; }

  /// Has `descriptor` closed, at once if that cannot block. Never waits.
  void close(int descriptor) noexcept;

  /// Descriptors that are not closed yet.
  [[nodiscard]] std::size_t pending() const;

  /// Those of them that the pipe did not take yet; tried again with each `close`.
  [[nodiscard]] std::size_t refused() const { return refused_.size(); }

  [[nodiscard]] std::size_t threads() const { return threads_.size(); }

 private:
  struct Shared;

  void handOver() noexcept;
  void addThread() noexcept;
  void interruptThreads() noexcept;

  std::size_t maximumThreads_;
  /// The threads have it, too, as they may outlive the Closer.
  std::shared_ptr<Shared> shared_;
  UniqueFd writing_;
  /// What the pipe did not take.
  std::vector<int> refused_;
  std::size_t handedOver_ = 0;
  std::vector<pthread_t> threads_;
};

} // namespace btfd
