#pragma once

#include "service/worker_pool.h"
#include "test_support/files.h"

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

namespace btfd::service {

/// A pool of real workers. Jobs are loads of a file that is no object: a worker needs no privilege to refuse it. A
/// worker that is stopped (SIGSTOP) is one whose job takes long.
class WorkerPoolTest : public testing::Test {
 protected:
  using Milliseconds = std::chrono::milliseconds;

  /// What became of a job.
  struct Outcome {
    std::string name;
    /// The Varlink error.
    std::string error;
    nlohmann::json parameters;
  };

  ~WorkerPoolTest() override {
    stopAtBirth(false);
    pool_.reset();
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
  }

  void make(WorkerPool::Options options) {
    pool_ = std::make_unique<WorkerPool>(context_, options, setup(),
                                         [this](const std::string& what) { lost_.push_back(what); });
  }

  void start(WorkerPool::Options options) {
    make(options);
    const auto started = pool_->start();
    ASSERT_TRUE(started) << started.error().message;
  }

  static loader::WorkerSetup setup() {
    loader::WorkerSetup setup;
    setup.limits = {.objectBytes = 1024, .verifierLogBytes = 1024};
    return setup;
  }

  WorkerPool::JobId submit(const std::string& name, Party party = {0, 0},
                           Milliseconds deadline = std::chrono::seconds(60)) {
    Job job;
    job.body["job"] = "load";
    job.body["parameters"]["objectFileDescriptor"] = 0;
    job.descriptors.push_back(test_support::memfdOf("no object"));
    job.party = party;
    job.deadline = deadline;
    job.done = [this, name](loader::Outcome<loader::ChannelMessage> outcome, const Job&) {
      outcomes_.push_back(outcome ? Outcome{name, "", outcome->body}
                                  : Outcome{name, outcome.error().error, outcome.error().parameters});
    };
    return pool_->submit(std::move(job));
  }

  /// Runs the loop until `condition` holds; fails after a while.
  void runUntil(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "nothing happened";
      context_.restart();
      context_.run_for(Milliseconds(5));
    }
  }

  void runFor(Milliseconds duration) {
    context_.restart();
    context_.run_for(duration);
  }

  void runUntilDone(std::size_t jobs) {
    runUntil([&] { return outcomes_.size() >= jobs; });
  }

  /// The workers' process ids: this process has no other children.
  static std::vector<pid_t> workers() {
    std::vector<pid_t> pids;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream file(thread.path() / "children");
      EXPECT_TRUE(file.good()) << "the kernel shows no children (CONFIG_PROC_CHILDREN)";
      for (pid_t pid = 0; file >> pid;) {
        pids.push_back(pid);
      }
    }
    return pids;
  }

  /// Stops a worker, and waits until it has stopped.
  static void stop(pid_t worker) {
    ASSERT_EQ(::kill(worker, SIGSTOP), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(worker, &status, WUNTRACED), worker);
    ASSERT_TRUE(WIFSTOPPED(status));
  }

  /// Whether workers are stopped as soon as they are forked.
  static void stopAtBirth(bool wanted) {
    static bool stopping = false;
    static const int registered = ::pthread_atfork(nullptr, nullptr, [] {
      if (stopping) {
        ::raise(SIGSTOP);
      }
    });
    ASSERT_EQ(registered, 0);
    stopping = wanted;
  }

  static void resume(pid_t worker) { ASSERT_EQ(::kill(worker, SIGCONT), 0); }

  static void stopAll() {
    for (const pid_t worker : workers()) {
      stop(worker);
    }
  }

  static void resumeAll() {
    for (const pid_t worker : workers()) {
      resume(worker);
    }
  }

  [[nodiscard]] std::vector<std::string> doneNames() const {
    std::vector<std::string> names;
    std::ranges::transform(outcomes_, std::back_inserter(names), &Outcome::name);
    return names;
  }

  Closer closer_;
  boost::asio::io_context context_;
  std::vector<std::string> lost_;
  std::vector<Outcome> outcomes_;
  std::unique_ptr<WorkerPool> pool_;
};

} // namespace btfd::service
