// How the number and the kind of workers changes.
#include "service/worker_process.h"
#include "test_support/lingering_socket.h"
#include "worker_pool_fixture.h"

#include <gmock/gmock.h>

namespace btfd::service {
namespace {

using test_support::CloseWatch;
using testing::ElementsAre;
using testing::IsEmpty;

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
  CloseWatch watch;
  std::vector<UniqueFd> descriptors;
  descriptors.push_back(watch.take());
  bool done = false;
  pool_->release({{"links", nlohmann::json::array()}}, std::move(descriptors), Party{}, [&] { done = true; });
  runUntil([&] { return done; });
  EXPECT_TRUE(watch.closed());
}

TEST_F(WorkerPoolTest, ReleasesGoOnWhileLoadsWait) {
  start({.count = 1, .maximumCount = 2, .queueLimit = 1});
  stopAll();
  submit("slow", {1, 0});
  submit("waiting", {1, 0}); // its party has its share
  submit("busy", {1, 0});
  CloseWatch watch;
  std::vector<UniqueFd> descriptors;
  descriptors.push_back(watch.take());
  bool released = false;
  pool_->release(nlohmann::json::object(), std::move(descriptors), Party{}, [&] { released = true; });
  runUntil([&] { return released; });
  EXPECT_TRUE(watch.closed());
  EXPECT_THAT(doneNames(), ElementsAre("busy")) << "the loads still wait";
  resumeAll();
  runUntilDone(3);
}

TEST_F(WorkerPoolTest, AReleaseWhoseWorkerIsLostIsDoneAllTheSame) {
  start({.count = 1, .maximumCount = 1, .queueLimit = 16});
  const pid_t worker = workers().at(0);
  stop(worker);
  CloseWatch watch;
  std::vector<UniqueFd> descriptors;
  descriptors.push_back(watch.take());
  bool released = false;
  pool_->release(nlohmann::json::object(), std::move(descriptors), Party{}, [&] { released = true; });
  ASSERT_EQ(::kill(worker, SIGKILL), 0);
  runUntil([&] { return released; });
  EXPECT_TRUE(watch.closed());
}

TEST_F(WorkerPoolTest, ReleasesCountForTheirParty) {
  start({.count = 2, .maximumCount = 2, .queueLimit = 16});
  stopAll();
  int released = 0;
  for (int i = 0; i < 4; ++i) {
    pool_->release(nlohmann::json::object(), {}, {1, 0}, [&] { ++released; });
  }
  EXPECT_EQ(pool_->runningJobs(), 1U);
  submit("another's", {2, 0});
  EXPECT_EQ(pool_->runningJobs(), 2U);
  resumeAll();
  runUntilDone(1);
  runUntil([&] { return released == 4; });
}

TEST_F(WorkerPoolTest, APartyThatReleasesHasToWaitWithItsLoads) {
  start({.count = 2, .maximumCount = 2, .queueLimit = 16});
  stopAll();
  bool released = false;
  pool_->release(nlohmann::json::object(), {}, {1, 0}, [&] { released = true; });
  submit("load", {1, 0});
  EXPECT_EQ(pool_->runningJobs(), 1U);
  resumeAll();
  runUntilDone(1);
  EXPECT_TRUE(released);
}

TEST_F(WorkerPoolTest, AReleasePastItsDeadlineIsDone) {
  start({.count = 1, .maximumCount = 1, .queueLimit = 16, .releaseDeadline = Milliseconds(50)});
  const auto before = workers();
  stopAll();
  CloseWatch watch;
  std::vector<UniqueFd> descriptors;
  descriptors.push_back(watch.take());
  bool released = false;
  pool_->release(nlohmann::json::object(), std::move(descriptors), Party{}, [&] { released = true; });
  runUntil([&] { return released; });
  EXPECT_TRUE(watch.closed());
  EXPECT_THAT(lost_, ElementsAre(testing::HasSubstr("deadline")));
  runUntil([&] { return workers().size() == 1 && workers() != before; });
}

TEST_F(WorkerPoolTest, AWorkerDoesNotWaitToReleaseADescriptorOfAClient) {
  ASSERT_TRUE(closer_.start());
  start({.count = 1, .maximumCount = 1, .queueLimit = 16, .closer = &closer_});
  const auto before = workers();
  test_support::LingeringSocket socket;
  std::vector<UniqueFd> descriptors;
  descriptors.emplace_back(socket.take().release(), &closer_);
  bool released = false;
  pool_->release(nlohmann::json::object(), std::move(descriptors), Party{}, [&] { released = true; });
  runUntil([&] { return released; });
  EXPECT_EQ(closer_.pending(), 1U);
  submit("next");
  runUntilDone(1);
  EXPECT_EQ(workers(), before);
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(WorkerPoolTest, AWorkerHasClosedWhatCameWithAJobWhenItAnswers) {
  WorkerForker forker;
  ASSERT_TRUE(forker.start());
  const auto worker = forker.fork(setup(), nullptr);
  ASSERT_TRUE(worker) << worker.error().message;
  CloseWatch watch;
  ASSERT_EQ(::kill(worker->pid, SIGSTOP), 0);
  {
    const UniqueFd object = test_support::memfdOf("no object");
    const UniqueFd watched = watch.take();
    nlohmann::json body;
    body["job"] = "load";
    body["parameters"]["objectFileDescriptor"] = 0;
    ASSERT_TRUE(loader::sendMessage(worker->channel, body, std::vector<BorrowedFd>{object, watched}));
  }
  EXPECT_FALSE(watch.closed());
  ASSERT_EQ(::kill(worker->pid, SIGCONT), 0);
  pollfd answer{.fd = worker->channel.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&answer, 1, 20'000), 1);
  EXPECT_TRUE(watch.closed());
}

} // namespace
} // namespace btfd::service
