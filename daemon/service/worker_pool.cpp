#include "worker_pool.h"

#include "answers.h"
#include "base/ready.h"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace btfd::service {

namespace asio = boost::asio;
using std::chrono::steady_clock;

namespace {

/// How long a job may wait while all workers are busy before there is one more. Longer than nearly all loads take, far
/// shorter than a person notices.
constexpr std::chrono::milliseconds kGrowthDelay{50};

/// Pause before the next attempt when a worker cannot be forked (no memory, no descriptors).
constexpr std::chrono::milliseconds kForkRetry{500};

loader::Failure workerLost(const WorkerEnd& end) {
  nlohmann::json parameters;
  parameters["message"] = "the worker that did this request was lost: " + end.text() +
                          "; nothing of the request is left. An object that kills its worker again is broken";
  if (end.signal != 0) {
    parameters["signal"] = end.signal;
  } else {
    parameters["exitStatus"] = end.exitStatus;
  }
  return {"io.btfd.WorkerLost", std::move(parameters)};
}

loader::Failure noWorker() {
  return {"io.btfd.WorkerLost",
          {{"message", "two workers that were to do this request were gone; nothing of the request was begun"}}};
}

loader::Failure deadlineExceeded(std::chrono::milliseconds deadline, std::string_view when,
                                 std::string_view left = "nothing of it is left") {
  nlohmann::json parameters;
  parameters["message"] = "the request was not done after " + std::to_string(deadline.count()) + " ms, when " +
                          std::string(when) + "; " + std::string(left);
  parameters["deadlineMs"] = deadline.count();
  return {"io.btfd.DeadlineExceeded", std::move(parameters)};
}

loader::Failure busy(std::size_t waiting) {
  nlohmann::json parameters;
  parameters["message"] = std::to_string(waiting) + " requests wait for a worker already; try again later";
  parameters["waiting"] = waiting;
  return {"io.btfd.Busy", std::move(parameters)};
}

/// The failure that a worker's answer reports, if it does.
std::optional<loader::Failure> failureIn(const nlohmann::json& answer) {
  const auto error = answer.find("error");
  if (error == answer.end() || !error->is_string()) {
    return std::nullopt;
  }
  loader::Failure failure{error->get<std::string>(), answer.value("parameters", nlohmann::json::object())};
  if (!failure.parameters.is_object()) {
    failure.parameters = nlohmann::json::object();
  }
  return failure;
}

/// Whether sending failed since the worker is gone.
bool isLost(const Error& error) {
  return error.code == EPIPE || error.code == ECONNRESET;
}

} // namespace

/// A worker process and the job that it does.
class WorkerPool::Worker : public std::enable_shared_from_this<Worker> {
 public:
  Worker(WorkerPool& pool, WorkerProcess process, std::uint64_t generation)
      : pool_(&pool), process_(std::move(process)), channel_(pool.context_, process_.channel.get()),
        end_(pool.context_, process_.process.get()), timer_(pool.context_), reader_(pool.options_.closer),
        generation_(generation) {}

  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  ~Worker() {
    // process_ owns the descriptors.
    static_cast<void>(channel_.release());
    static_cast<void>(end_.release());
  }

  void watch() {
    awaitAnswer();
    awaitEnd();
  }

  /// Gives the worker a job. On an error the job is still the caller's.
  Result<void> begin(Pending& pending) {
    const std::vector<BorrowedFd> descriptors(pending.job.descriptors.begin(), pending.job.descriptors.end());
    if (auto sent = loader::sendMessage(process_.channel, pending.job.body, descriptors); !sent) {
      if (isLost(sent.error()) || sent.error().code == ECONNABORTED) {
        lose();
      }
      return sent;
    }
    running_ = std::move(pending);
    holder_ = {running_->job.party, running_->release};
    if (running_->release) {
      running_->deadline = steady_clock::now() + pool_->options_.releaseDeadline;
      // The worker's copies have to be the last ones, as it is the closing that ends a link. Of a client's descriptor
      // they must not be: the worker would wait for the client.
      std::erase_if(running_->job.descriptors,
                    [](const UniqueFd& descriptor) { return descriptor.closer() == nullptr; });
    }
    timer_.expires_at(running_->deadline);
    timer_.async_wait([self = shared_from_this(), id = running_->id](const boost::system::error_code& error) {
      if (!error && self->pool_ != nullptr && self->running_ && self->running_->id == id) {
        self->expire();
      }
    });
    return {};
  }

  /// Ends the worker because the pool wants it.
  void kill() {
    dying_ = true;
    signal();
  }

  /// Ends the worker at its job's deadline. The job is answered when it has ended, as nothing is left of it then; but
  /// a wait in the kernel that SIGKILL does not end (state D) must not hold up the answer.
  void expire() {
    expired_ = true;
    kill();
    pool_->replaceSoon();
    timer_.expires_after(pool_->options_.killGrace);
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error && self->pool_ != nullptr && self->running_) {
        self->pool_->onStuck(*self);
      }
    });
  }

  /// Makes sure of the end of a worker that does not answer as it should.
  void lose() {
    broken_ = true;
    signal();
  }

  /// Whether the process has ended, which the loop may not have heard of yet.
  [[nodiscard]] bool hasEnded() const { return isReady(process_.process, POLLIN); }

  void signal() const { ::syscall(SYS_pidfd_send_signal, process_.process.get(), SIGKILL, nullptr, 0); }

  /// Lets an idle worker end by itself.
  void retire() {
    dying_ = true;
    boost::system::error_code ignored;
    channel_.cancel(ignored);
    static_cast<void>(channel_.release());
    // Not by closing it, which is for the Closer.
    ::shutdown(process_.channel.get(), SHUT_RDWR);
    process_.channel.reset();
  }

  /// Cuts the ties to a pool that goes away.
  void abandon() {
    pool_ = nullptr;
    boost::system::error_code ignored;
    channel_.cancel(ignored);
    end_.cancel(ignored);
    timer_.cancel();
    kill();
  }

  std::optional<Pending> takeJob() {
    timer_.cancel();
    return std::exchange(running_, std::nullopt);
  }

  /// It has answered, so that it is nobody's any more.
  void free() { holder_.reset(); }

  /// Whose job it does, or died of; it counts for that party until it has ended. And whether that is a release.
  [[nodiscard]] const std::optional<std::pair<Party, bool>>& holder() const { return holder_; }

  [[nodiscard]] bool idle() const { return !running_ && !dying_ && !broken_; }

  [[nodiscard]] bool dying() const { return dying_; }

  /// Whether it can still be given jobs, now or later.
  [[nodiscard]] bool usable() const { return !dying_ && !broken_; }

  [[nodiscard]] const std::optional<Pending>& running() const { return running_; }

  [[nodiscard]] bool expired() const { return expired_; }

  [[nodiscard]] std::uint64_t generation() const { return generation_; }

  [[nodiscard]] const WorkerProcess& process() const { return process_; }

 private:
  void awaitEnd() {
    end_.async_wait(asio::posix::descriptor_base::wait_read,
                    [self = shared_from_this()](const boost::system::error_code& error) {
                      if (error || self->pool_ == nullptr) {
                        return;
                      }
                      if (self->hasEnded()) { // see isReady
                        self->pool_->onEnd(*self);
                      } else {
                        self->awaitEnd();
                      }
                    });
  }

  void awaitAnswer() {
    channel_.async_wait(asio::posix::descriptor_base::wait_read,
                        [self = shared_from_this()](const boost::system::error_code& error) {
                          if (!error && self->pool_ != nullptr && !self->dying_) {
                            self->receive();
                          }
                        });
  }

  void receive() {
    auto message = reader_.receive(process_.channel);
    if (!message && message.error().code != EAGAIN && message.error().code != EMFILE) {
      lose(); // gone, or it talks nonsense; its end comes by the pidfd
      return;
    }
    if (!message && message.error().code == EMFILE) {
      // It has answered. Were it killed for that, there might be no descriptor for its successor.
      pool_->onAnswer(*this, std::unexpected(failureOf(message.error())));
    } else if (message && *message) {
      pool_->onAnswer(*this, std::move(**message));
    }
    if (usable()) {
      awaitAnswer();
    }
  }

  WorkerPool* pool_;
  WorkerProcess process_;
  asio::posix::stream_descriptor channel_;
  asio::posix::stream_descriptor end_;
  asio::steady_timer timer_;
  loader::ChannelReader reader_;
  std::uint64_t generation_;
  std::optional<Pending> running_;
  std::optional<std::pair<Party, bool>> holder_;
  bool dying_ = false;
  bool broken_ = false;
  bool expired_ = false;
};

WorkerPool::WorkerPool(asio::io_context& context, Options options, loader::WorkerSetup setup, OnLost onLost)
    : context_(context), options_(options), setup_(std::move(setup)), onLost_(std::move(onLost)), queueTimer_(context),
      growthTimer_(context), refillTimer_(context) {}

WorkerPool::~WorkerPool() {
  for (const auto& worker : workers_) {
    worker->abandon();
  }
}

Result<void> WorkerPool::start() {
  if (auto started = forker_.start(); !started) {
    return started;
  }
  while (workers_.size() < options_.count) {
    auto process = forker_.fork(setup_, options_.closer);
    if (!process) {
      return std::unexpected(std::move(process.error()));
    }
    workers_.push_back(std::make_shared<Worker>(*this, std::move(*process), setupGeneration_));
    workers_.back()->watch();
  }
  return {};
}

WorkerPool::JobId WorkerPool::submit(Job job) {
  const JobId id = ++lastId_;
  Pending pending{.id = id, .job = std::move(job), .deadline = {}, .release = false};
  pending.deadline = steady_clock::now() + pending.job.deadline;
  // A user who has nothing waiting is let in nevertheless: others must not fill the queue for all.
  const auto isOfUser = [user = pending.job.party.first](const auto& entry) {
    return entry.first.first == user && !entry.second.empty();
  };
  if (queued_ >= options_.queueLimit && std::ranges::any_of(queues_, isOfUser)) {
    asio::post(context_, [this, waiting = queued_, refused = std::make_shared<Pending>(std::move(pending))] {
      finish(std::move(*refused), std::unexpected(busy(waiting)));
    });
    return id;
  }
  const auto queue = std::ranges::find(queues_, pending.job.party, &decltype(queues_)::value_type::first);
  if (queue == queues_.end()) {
    queues_.emplace_back(pending.job.party, std::deque<Pending>{}).second.push_back(std::move(pending));
  } else {
    queue->second.push_back(std::move(pending));
  }
  ++queued_;
  dispatch();
  return id;
}

void WorkerPool::release(nlohmann::json body, std::vector<UniqueFd> descriptors, Party party,
                         std::function<void()> done) {
  body["job"] = "release";
  settle(std::move(body), std::move(descriptors), party,
         [done = std::move(done)](const std::optional<nlohmann::json>&) { done(); });
}

void WorkerPool::settle(nlohmann::json body, std::vector<UniqueFd> descriptors, Party party,
                        std::function<void(std::optional<nlohmann::json>)> done) {
  Job job{.body = std::move(body), .descriptors = std::move(descriptors), .party = party, .deadline = {}, .done = {}};
  job.done = [done = std::move(done)](loader::Outcome<loader::ChannelMessage> outcome, const Job&) {
    std::optional<nlohmann::json> answer;
    if (outcome && !outcome->body.is_null()) { // a release whose worker was lost says nothing
      answer.emplace(std::move(outcome->body));
    }
    done(std::move(answer));
  };
  releases_.push_back({.id = ++lastId_, .job = std::move(job), .deadline = {}, .release = true});
  dispatch();
}

void WorkerPool::cancel(JobId id) {
  for (auto queue = queues_.begin(); queue != queues_.end(); ++queue) {
    if (std::erase_if(queue->second, [&](const Pending& pending) { return pending.id == id; }) != 0) {
      --queued_;
      if (queue->second.empty()) {
        queues_.erase(queue);
      }
      return;
    }
  }
  for (const auto& worker : workers_) {
    if (worker->running() && worker->running()->id == id) {
      worker->takeJob();
      worker->kill();
      replaceSoon();
      return;
    }
  }
}

void WorkerPool::setSetup(loader::WorkerSetup setup) {
  setup_ = std::move(setup);
  ++setupGeneration_;
  for (const auto& worker : workers_) {
    if (worker->idle()) {
      worker->retire();
    }
  }
  replenish();
  dispatch();
}

void WorkerPool::suspendForks() {
  ++suspended_;
}

void WorkerPool::resumeForks() {
  if (--suspended_ == 0) {
    replenish();
    dispatch();
  }
}

std::size_t WorkerPool::runningJobs() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(workers_, [](const auto& worker) { return worker->running().has_value(); }));
}

void WorkerPool::fork() {
  auto process = forker_.fork(setup_, options_.closer);
  if (!process) {
    onLost_(process.error().message + "; trying again");
    refillTimer_.expires_after(kForkRetry);
    refillTimer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) {
        replenish();
        dispatch();
      }
    });
    return;
  }
  workers_.push_back(std::make_shared<Worker>(*this, std::move(*process), setupGeneration_));
  workers_.back()->watch();
}

/// Forks until as many workers as should be kept are there.
void WorkerPool::replenish() {
  if (!forker_.started()) {
    return; // the first setup may come before the start
  }
  const auto alive = [this] {
    return static_cast<std::size_t>(std::ranges::count_if(
        workers_, [this](const auto& worker) { return worker->usable() && worker->generation() == setupGeneration_; }));
  };
  for (std::size_t missing = alive() < options_.count ? options_.count - alive() : 0; missing > 0 && suspended_ == 0;
       --missing) {
    fork();
  }
}

WorkerPool::Worker* WorkerPool::idleWorker() {
  const auto found = std::ranges::find_if(
      workers_, [this](const auto& worker) { return worker->idle() && worker->generation() == setupGeneration_; });
  return found == workers_.end() ? nullptr : found->get();
}

/// How many workers one party may have: one is always left to the others.
std::size_t WorkerPool::share() const {
  return std::max<std::size_t>(1, options_.count - 1);
}

std::size_t WorkerPool::heldBy(const Party& party) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      workers_, [&](const auto& worker) { return worker->holder() && worker->holder()->first == party; }));
}

std::size_t WorkerPool::releasesOf(const Party& party) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(workers_, [&](const auto& worker) { return worker->holder() == std::pair(party, true); }));
}

std::size_t WorkerPool::usableWorkers() const {
  return static_cast<std::size_t>(std::ranges::count_if(workers_, [](const auto& worker) { return worker->usable(); }));
}

std::optional<WorkerPool::Pending> WorkerPool::next() {
  // What is released frees the kernel of something, and is quick: a party's loads do not hold it up.
  const auto release = std::ranges::find_if(
      releases_, [this](const Pending& pending) { return releasesOf(pending.job.party) < share(); });
  if (release != releases_.end()) {
    Pending pending = std::move(*release);
    releases_.erase(release);
    return pending;
  }
  for (auto queue = queues_.begin(); queue != queues_.end(); ++queue) {
    if (heldBy(queue->first) >= share()) {
      continue;
    }
    auto [party, waiting] = std::move(*queue);
    queues_.erase(queue);
    Pending pending = std::move(waiting.front());
    waiting.pop_front();
    --queued_;
    if (!waiting.empty()) {
      queues_.emplace_back(party, std::move(waiting));
    }
    return pending;
  }
  return std::nullopt;
}

/// Puts a job that no worker has got where it came from.
void WorkerPool::putBack(Pending pending) {
  if (pending.release) {
    releases_.push_front(std::move(pending));
    return;
  }
  ++queued_;
  const auto queue = std::ranges::find(queues_, pending.job.party, &decltype(queues_)::value_type::first);
  if (queue != queues_.end()) {
    queue->second.push_front(std::move(pending));
    return;
  }
  const Party party = pending.job.party;
  queues_.emplace_front(party, std::deque<Pending>{}).second.push_front(std::move(pending));
}

void WorkerPool::dispatch() {
  while (Worker* worker = idleWorker()) {
    auto pending = next();
    if (!pending) {
      break;
    }
    if (const auto begun = worker->begin(*pending); !begun) {
      refuse(std::move(*pending), begun.error());
    }
  }
  if (queued_ > 0) {
    armQueueTimer();
  }
  if (queued_ > 0 || !releases_.empty()) {
    armGrowthTimer();
  }
}

/// What becomes of a job that a worker could not be given. That a worker is gone is no fault of the job, but none is to
/// go through one worker after the other.
void WorkerPool::refuse(Pending pending, const Error& error) {
  if (isLost(error) && !std::exchange(pending.putBack, true)) {
    for (const auto& worker : workers_) {
      if (worker->idle() && worker->hasEnded()) {
        worker->lose(); // else the job would be given to it next
      }
    }
    putBack(std::move(pending));
    return;
  }
  asio::post(context_, [this, failed = std::make_shared<Pending>(std::move(pending)), error] {
    failed->job.descriptors.clear();
    finish(std::move(*failed), std::unexpected(isLost(error) ? noWorker() : failureOf(error)));
  });
}

/// Wakes up when the first of the waiting jobs runs out of time.
void WorkerPool::armQueueTimer() {
  auto first = steady_clock::time_point::max();
  for (const auto& [party, waiting] : queues_) {
    for (const Pending& pending : waiting) {
      first = std::min(first, pending.deadline);
    }
  }
  queueTimer_.expires_at(first);
  queueTimer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      expireQueued();
    }
  });
}

void WorkerPool::expireQueued() {
  const auto now = steady_clock::now();
  std::vector<Pending> expired;
  for (auto& [party, waiting] : queues_) {
    for (Pending& pending : waiting) {
      if (pending.deadline <= now) {
        expired.push_back(std::exchange(pending, Pending{})); // id 0 is nobody's
      }
    }
    std::erase_if(waiting, [](const Pending& pending) { return pending.id == 0; });
  }
  std::erase_if(queues_, [](const auto& queue) { return queue.second.empty(); });
  queued_ -= expired.size();
  for (Pending& pending : expired) {
    const auto deadline = pending.job.deadline;
    finish(std::move(pending), std::unexpected(deadlineExceeded(deadline, "it still waited for a worker")));
  }
  if (queued_ > 0) {
    armQueueTimer();
  }
}

void WorkerPool::armGrowthTimer() {
  if (std::exchange(growthTimerArmed_, true)) {
    return;
  }
  growthTimer_.expires_after(kGrowthDelay);
  growthTimer_.async_wait([this](const boost::system::error_code& error) {
    growthTimerArmed_ = false;
    if (error || (queued_ == 0 && releases_.empty())) {
      return;
    }
    if (suspended_ == 0 && idleWorker() == nullptr && usableWorkers() < options_.maximumCount) {
      fork();
    }
    dispatch();
  });
}

void WorkerPool::onAnswer(Worker& worker, loader::Outcome<loader::ChannelMessage> outcome) {
  auto pending = worker.takeJob();
  if (!pending) {
    worker.lose(); // an answer that nobody asked for
    return;
  }
  worker.free();
  if (auto failure = outcome ? failureIn(outcome->body) : std::nullopt) {
    outcome = std::unexpected(std::move(*failure));
  }
  const bool outdated = worker.generation() != setupGeneration_;
  finish(std::move(*pending), std::move(outcome));
  if (outdated) {
    worker.retire();
    replenish();
  } else {
    retireSurplus();
  }
  dispatch();
}

/// Lets go of workers beyond those that are kept, once nobody waits.
void WorkerPool::retireSurplus() {
  if (queued_ > 0 || !releases_.empty()) {
    return;
  }
  std::size_t alive = usableWorkers();
  for (const auto& worker : workers_) {
    if (alive > options_.count && worker->idle()) {
      worker->retire();
      --alive;
    }
  }
}

void WorkerPool::onEnd(Worker& worker) {
  const WorkerEnd end = reap(worker.process());
  auto pending = worker.takeJob();
  const bool expected = worker.dying() && !worker.expired() && !pending;
  if (!expected) {
    onLost_("worker " + std::to_string(worker.process().pid) + " " +
            (worker.expired() ? "was killed at its job's deadline" : end.text()));
  }
  const bool expired = worker.expired();
  const auto found = std::ranges::find(workers_, &worker, &std::shared_ptr<Worker>::get);
  const auto keptAlive = std::move(*found); // until this function is done
  workers_.erase(found);
  if (pending && pending->release) {
    finish(std::move(*pending), loader::ChannelMessage{});
  } else if (pending) {
    const auto deadline = pending->job.deadline;
    finish(std::move(*pending),
           std::unexpected(expired ? deadlineExceeded(deadline, "its worker was killed") : workerLost(end)));
  }
  replaceSoon();
}

/// A worker that was killed at its job's deadline has not ended in time.
void WorkerPool::onStuck(Worker& worker) {
  auto pending = worker.takeJob();
  onLost_("worker " + std::to_string(worker.process().pid) +
          " was killed at its job's deadline, but waits in the kernel and does not end");
  if (pending->release) {
    finish(std::move(*pending), loader::ChannelMessage{});
    return;
  }
  const auto deadline = pending->job.deadline;
  finish(std::move(*pending),
         std::unexpected(deadlineExceeded(deadline, "its worker was killed, which waits in the kernel",
                                          "what was done of it ends with the worker")));
}

/// In the background: forking takes longer than what else there may be to do now.
void WorkerPool::replaceSoon() {
  asio::post(context_, [this] {
    replenish();
    dispatch();
  });
}

void WorkerPool::finish(Pending pending, loader::Outcome<loader::ChannelMessage> outcome) {
  auto done = std::move(pending.job.done);
  done(std::move(outcome), std::move(pending.job));
}

} // namespace btfd::service
