// How the number and the kind of workers changes.
#include "worker_pool_fixture.h"

#include <gmock/gmock.h>

#include <array>

namespace btfd::service {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A pipe, whose reading end sees the end of all writing ends.
struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    reading = UniqueFd(ends[0]);
    writing = UniqueFd(ends[1]);
  }

  [[nodiscard]] bool closed() const {
    char byte = 0;
    return ::read(reading.get(), &byte, 1) == 0;
  }

  UniqueFd reading;
  UniqueFd writing;
};

TEST_F(WorkerPoolTest, GrowsWhileAllAreBusyAndShrinksAgain) {
  start({.count = 1, .maximumCount = 2, .queueLimit = 16});
  const auto before = workers();
  stopAll();
  submit("slow", {1, 0});
  submit("quick", {2, 0});
  runUntilDone(1);
  EXPECT_THAT(doneNames(), ElementsAre("quick"));
  resume(before[0]);
  runUntilDone(2);
  runUntil([&] { return workers().size() == 1; });
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(WorkerPoolTest, GrowsUpToItsBoundOnly) {
  stopAtBirth(true);
  start({.count = 1, .maximumCount = 3, .queueLimit = 16});
  for (std::uint64_t party = 0; party < 5; ++party) {
    submit("slow", {party, 0});
  }
  runUntil([&] { return workers().size() == 3; });
  runFor(Milliseconds(200));
  EXPECT_EQ(workers().size(), 3U);
  resumeAll();
  runUntilDone(5);
}

TEST_F(WorkerPoolTest, ANewSetupReplacesIdleWorkersAtOnceAndBusyOnesAfterTheirJob) {
  start({.count = 2, .maximumCount = 2, .queueLimit = 16});
  const auto before = workers();
  stopAll();
  submit("at work"); // in one of the two
  pool_->setSetup(setup());
  for (const pid_t worker : before) {
    resume(worker);
  }
  runUntilDone(1);
  EXPECT_EQ(outcomes_[0].error, "io.btfd.InvalidObject");
  runUntil([&] {
    const auto now = workers();
    return now.size() == 2 && now[0] != before[0] && now[0] != before[1] && now[1] != before[0] && now[1] != before[1];
  });
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(WorkerPoolTest, JobsAfterANewSetupAreDoneWithIt) {
  start({.count = 1, .maximumCount = 1, .queueLimit = 16});
  auto stricter = setup();
  stricter.limits.objectBytes = 1;
  pool_->setSetup(stricter);
  submit("too large now");
  runUntilDone(1);
  EXPECT_THAT(outcomes_[0].parameters.at("message").get<std::string>(), testing::HasSubstr("at most 1"));
}

TEST_F(WorkerPoolTest, NothingIsForkedWhileForksAreSuspended) {
  start({.count = 1, .maximumCount = 4, .queueLimit = 16});
  pool_->suspendForks();
  pool_->suspendForks();
  ASSERT_EQ(::kill(workers().at(0), SIGKILL), 0);
  runUntil([&] { return workers().empty(); });
  submit("waits");
  runFor(Milliseconds(200));
  EXPECT_THAT(workers(), IsEmpty());
  pool_->resumeForks();
  runFor(Milliseconds(100));
  EXPECT_THAT(workers(), IsEmpty()) << "suspended twice";
  pool_->resumeForks();
  runUntilDone(1);
  EXPECT_EQ(outcomes_[0].error, "io.btfd.InvalidObject");
}

TEST_F(WorkerPoolTest, ReleasingClosesDescriptorsInTheFrontToo) {
  start({.count = 1, .maximumCount = 1, .queueLimit = 16});
  Pipe pipe;
  std::vector<UniqueFd> descriptors;
  descriptors.push_back(std::move(pipe.writing));
  bool done = false;
  pool_->release({{"links", nlohmann::json::array()}}, std::move(descriptors), [&] { done = true; });
  runUntil([&] { return done; });
  EXPECT_TRUE(pipe.closed());
}

TEST_F(WorkerPoolTest, ReleasesGoOnWhileLoadsWait) {
  start({.count = 1, .maximumCount = 2, .queueLimit = 1});
  stopAll();
  submit("slow", {1, 0});
  submit("waiting", {1, 0}); // its party has its share
  submit("busy", {1, 0});
  Pipe pipe;
  std::vector<UniqueFd> descriptors;
  descriptors.push_back(std::move(pipe.writing));
  bool released = false;
  pool_->release(nlohmann::json::object(), std::move(descriptors), [&] { released = true; });
  runUntil([&] { return released; });
  EXPECT_TRUE(pipe.closed());
  EXPECT_THAT(doneNames(), ElementsAre("busy")) << "the loads still wait";
  resumeAll();
  runUntilDone(3);
}

TEST_F(WorkerPoolTest, AReleaseWhoseWorkerIsLostIsDoneAllTheSame) {
  start({.count = 1, .maximumCount = 1, .queueLimit = 16});
  const pid_t worker = workers().at(0);
  stop(worker);
  Pipe pipe;
  std::vector<UniqueFd> descriptors;
  descriptors.push_back(std::move(pipe.writing));
  bool released = false;
  pool_->release(nlohmann::json::object(), std::move(descriptors), [&] { released = true; });
  ASSERT_EQ(::kill(worker, SIGKILL), 0);
  runUntil([&] { return released; });
  EXPECT_TRUE(pipe.closed());
}

} // namespace
} // namespace btfd::service
