#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "loader/channel.h"
#include "loader/failure.h"
#include "loader/worker.h"
#include "worker_process.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace btfd::service {

/// Whose job it is, for fairness: jobs of different parties take turns.
using Party = std::pair<std::uint64_t, std::uint64_t>;

/// What a worker is to do.
struct Job {
  /// As loader::runWorker takes it.
  nlohmann::json body;
  std::vector<UniqueFd> descriptors;
  Party party;
  /// Counted from its submission, the time in the queue included.
  std::chrono::milliseconds deadline{};
  /// Gets the worker's answer, or io.btfd.WorkerLost, DeadlineExceeded or Busy; never from within `submit`. Gets the
  /// job back, too, so that it can be submitted again. Not called for a job that was cancelled.
  std::function<void(loader::Outcome<loader::ChannelMessage>, Job)> done;
};

/// The workers, and the jobs that wait for one.
///
/// Workers are forked ahead. One that dies, or that had to be killed, is replaced in the background. While jobs wait
/// although all workers are busy with long ones, more workers are forked, up to a bound: a client with slow objects
/// does not hold up another's. For one thread, the io_context's.
class WorkerPool {
 public:
  struct Options {
    /// Workers that are kept ready.
    std::size_t count = 2;
    /// Workers that there may be while jobs wait.
    std::size_t maximumCount = 8;
    /// Jobs that may wait.
    std::size_t queueLimit = 256;
    /// What a release may take once a worker has begun it. It waits for the kernel, say for RCU at each link.
    std::chrono::milliseconds releaseDeadline{60'000};
    /// How long a killed worker may take to end before its job is answered without waiting for that.
    std::chrono::milliseconds killGrace{1'000};
    /// Closes what comes from workers, as they return descriptors of clients.
    Closer* closer = nullptr;
  };

  /// What happens to workers, for the log and for Monitor.
  using OnLost = std::function<void(const std::string& what)>;

  WorkerPool(boost::asio::io_context& context, Options options, loader::WorkerSetup setup, OnLost onLost);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Kills all workers.
  ~WorkerPool();

  /// Forks the workers. To be called once, before the loop runs.
  Result<void> start();

  using JobId = std::uint64_t;

  JobId submit(Job job);

  /// Drops links and descriptors of `party`, which may make the kernel wait: a lane of its own, without queue limit.
  /// `done` is called when they are gone or, past the deadline, when the end of the worker has to see to that.
  void release(nlohmann::json body, std::vector<UniqueFd> descriptors, Party party, std::function<void()> done);

  /// Has `body`'s job done, which has to be, in the lane of releases. `done` gets the answer, or nothing if the worker
  /// was lost. Descriptors of BPF's and the kernel's are closed before the worker closes its own.
  void settle(nlohmann::json body, std::vector<UniqueFd> descriptors, Party party,
              std::function<void(std::optional<nlohmann::json>)> done);

  /// Forgets a job that nobody waits for any more, and kills its worker if it runs.
  void cancel(JobId id);

  /// Replaces all workers by such as have `setup`; those at work finish their job first.
  void setSetup(loader::WorkerSetup setup);

  /// While another thread runs, nothing may be forked: jobs wait for the workers that are there.
  void suspendForks();
  void resumeForks();

  [[nodiscard]] std::size_t runningJobs() const;

  [[nodiscard]] std::size_t queuedJobs() const { return queued_; }

 private:
  struct Pending {
    JobId id = 0;
    Job job;
    std::chrono::steady_clock::time_point deadline;
    bool release = false;
    /// Whether a worker that it was given to turned out to be gone.
    bool putBack = false;
  };

  class Worker;

  void fork();
  void replenish();
  void dispatch();
  void refuse(Pending pending, const Error& error);
  void putBack(Pending pending);
  std::optional<Pending> next();
  [[nodiscard]] std::size_t share() const;
  [[nodiscard]] std::size_t heldBy(const Party& party) const;
  [[nodiscard]] std::size_t releasesOf(const Party& party) const;
  [[nodiscard]] std::size_t usableWorkers() const;
  Worker* idleWorker();
  void expireQueued();
  void armQueueTimer();
  void armGrowthTimer();
  void onAnswer(Worker& worker, loader::Outcome<loader::ChannelMessage> outcome);
  void onEnd(Worker& worker);
  void onStuck(Worker& worker);
  void replaceSoon();
  void retireSurplus();
  void finish(Pending pending, loader::Outcome<loader::ChannelMessage> outcome);

  boost::asio::io_context& context_;
  Options options_;
  loader::WorkerSetup setup_;
  std::uint64_t setupGeneration_ = 0;
  OnLost onLost_;
  WorkerForker forker_;
  std::list<std::shared_ptr<Worker>> workers_;
  /// Parties take turns: the one whose job was taken goes to the end.
  std::deque<std::pair<Party, std::deque<Pending>>> queues_;
  std::deque<Pending> releases_;
  std::size_t queued_ = 0;
  JobId lastId_ = 0;
  int suspended_ = 0;
  boost::asio::steady_timer queueTimer_;
  boost::asio::steady_timer growthTimer_;
  bool growthTimerArmed_ = false;
  boost::asio::steady_timer refillTimer_;
};

} // namespace btfd::service
