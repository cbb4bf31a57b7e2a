#include "worker_pool_fixture.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include <sys/ptrace.h>
#include <sys/wait.h>

namespace btfd::service {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Lets a process of this one's stop at its end, as one whose end waits in the kernel. It does nothing else, either.
class UnkillableProcess {
 public:
  explicit UnkillableProcess(pid_t process) : process_(process) {
    EXPECT_EQ(::ptrace(PTRACE_SEIZE, process_, nullptr, PTRACE_O_TRACEEXIT), 0) << std::strerror(errno);
    EXPECT_EQ(::ptrace(PTRACE_INTERRUPT, process_, nullptr, nullptr), 0);
    EXPECT_EQ(::waitpid(process_, nullptr, 0), process_);
  }

  UnkillableProcess(const UnkillableProcess&) = delete;
  UnkillableProcess& operator=(const UnkillableProcess&) = delete;

  ~UnkillableProcess() {
    EXPECT_EQ(::waitpid(process_, nullptr, 0), process_); // it has stopped at its end
    EXPECT_EQ(::ptrace(PTRACE_DETACH, process_, nullptr, nullptr), 0);
  }

 private:
  pid_t process_;
};

constexpr WorkerPool::Options kTwo{.count = 2, .maximumCount = 2, .queueLimit = 16};
constexpr WorkerPool::Options kOne{.count = 1, .maximumCount = 1, .queueLimit = 16};

TEST_F(WorkerPoolTest, ForksAsManyWorkersAsAreWanted) {
  start({.count = 3, .maximumCount = 3, .queueLimit = 1});
  EXPECT_EQ(workers().size(), 3U);
}

TEST_F(WorkerPoolTest, ASetupBeforeTheStartIsThatOfTheFirstWorkers) {
  make(kTwo);
  pool_->setSetup(setup());
  EXPECT_TRUE(workers().empty());
  EXPECT_EQ(lost_, std::vector<std::string>{});
  ASSERT_TRUE(pool_->start());
  submit("a");
  runUntilDone(1);
  EXPECT_EQ(outcomes_[0].error, "io.btfd.InvalidObject");
}

TEST_F(WorkerPoolTest, JobsAreDoneAndNotFromWithinSubmit) {
  start(kTwo);
  submit("a");
  submit("b", {1, 0});
  EXPECT_THAT(outcomes_, IsEmpty());
  EXPECT_EQ(pool_->runningJobs(), 2U);
  runUntilDone(2);
  for (const auto& outcome : outcomes_) {
    EXPECT_EQ(outcome.error, "io.btfd.InvalidObject");
    EXPECT_THAT(outcome.parameters.at("message").get<std::string>(), HasSubstr("not an ELF file"));
  }
  EXPECT_EQ(pool_->runningJobs(), 0U);
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(WorkerPoolTest, AWorkerDoesOneJobAfterTheOther) {
  start(kOne);
  const auto before = workers();
  for (int i = 0; i < 10; ++i) {
    submit(std::to_string(i));
  }
  EXPECT_EQ(pool_->runningJobs(), 1U);
  EXPECT_EQ(pool_->queuedJobs(), 9U);
  runUntilDone(10);
  EXPECT_THAT(doneNames(), ElementsAre("0", "1", "2", "3", "4", "5", "6", "7", "8", "9"));
  EXPECT_EQ(workers(), before);
}

TEST_F(WorkerPoolTest, AWorkerKilledWhileIdleIsReplaced) {
  start(kTwo);
  const auto before = workers();
  ASSERT_EQ(::kill(before[0], SIGKILL), 0);
  runUntil([&] { return !lost_.empty() && workers().size() == 2 && workers() != before; });
  EXPECT_THAT(lost_, ElementsAre(HasSubstr("killed by SIGKILL")));
  submit("after");
  runUntilDone(1);
  EXPECT_EQ(outcomes_[0].error, "io.btfd.InvalidObject");
}

TEST_F(WorkerPoolTest, AJobWhoseWorkerIsKilledIsLostAndOnlyThatJob) {
  start(kTwo);
  const auto pids = workers();
  stopAll();
  submit("first", {0, 0});
  submit("second", {1, 0});
  ASSERT_EQ(::kill(pids[0], SIGSEGV), 0);
  resumeAll();
  runUntilDone(2);
  std::ranges::sort(outcomes_, {}, &Outcome::error);
  EXPECT_EQ(outcomes_[0].error, "io.btfd.InvalidObject");
  EXPECT_EQ(outcomes_[1].error, "io.btfd.WorkerLost");
  EXPECT_EQ(outcomes_[1].parameters.at("signal"), SIGSEGV);
  EXPECT_THAT(outcomes_[1].parameters.at("message").get<std::string>(), HasSubstr("SIGSEGV"));
  runUntil([&] { return workers().size() == 2 && workers() != pids; });
}

TEST_F(WorkerPoolTest, AWorkerThatIsGoneButNotNoticedYetLosesNoJob) {
  start(kTwo);
  for (const pid_t worker : workers()) {
    ASSERT_EQ(::kill(worker, SIGKILL), 0);
    // It has ended, but is still to be collected by the pool.
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(worker), &info, WEXITED | WNOWAIT), 0);
  }
  submit("job");
  runUntilDone(1);
  EXPECT_EQ(outcomes_[0].error, "io.btfd.InvalidObject");
}

TEST_F(WorkerPoolTest, WhatCannotBeSentIsTheJobsFailureAndNoWorkers) {
  start(kTwo);
  const auto before = workers();
  const auto submitBroken = [&](const std::string& name, Job job) {
    job.body["job"] = "load";
    job.deadline = std::chrono::seconds(60);
    job.done = [this, name](loader::Outcome<loader::ChannelMessage> outcome, const Job&) {
      outcomes_.push_back(outcome ? Outcome{name, "", outcome->body}
                                  : Outcome{name, outcome.error().error, outcome.error().parameters});
    };
    pool_->submit(std::move(job));
  };
  Job noDescriptor;
  noDescriptor.descriptors.emplace_back();
  submitBroken("no descriptor", std::move(noDescriptor));
  Job large;
  large.body["text"] = std::string(loader::kMaximumBody, 'x');
  submitBroken("large", std::move(large));
  EXPECT_THAT(outcomes_, IsEmpty()) << "not from within submit";
  submit("good");
  runUntilDone(3);
  std::ranges::sort(outcomes_, {}, &Outcome::name);
  EXPECT_EQ(outcomes_[0].error, "io.btfd.InvalidObject");
  EXPECT_EQ(outcomes_[1].error, "io.btfd.LimitExceeded");
  EXPECT_EQ(outcomes_[1].parameters.at("limit"), "messageBytes");
  EXPECT_EQ(outcomes_[2].error, "io.systemd.System");
  EXPECT_EQ(outcomes_[2].parameters.at("errnoName"), "EBADF");
  EXPECT_EQ(workers(), before);
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(WorkerPoolTest, AMessageThatWasSentInPartTakesItsWorkerAlong) {
  start(kOne);
  Job job;
  job.body["job"] = "load";
  const UniqueFd file = test_support::memfdOf("x");
  for (int i = 0; i < 253; ++i) {
    job.descriptors.emplace_back(::dup(file.get()));
  }
  job.descriptors.emplace_back(); // does not fit the first packet
  job.deadline = std::chrono::seconds(60);
  std::string error;
  job.done = [&](loader::Outcome<loader::ChannelMessage> outcome, const Job&) {
    error = outcome ? "none" : outcome.error().error;
  };
  const auto before = workers();
  pool_->submit(std::move(job));
  submit("next");
  runUntilDone(1);
  EXPECT_EQ(error, "io.systemd.System");
  EXPECT_EQ(outcomes_[0].error, "io.btfd.InvalidObject");
  EXPECT_NE(workers(), before);
}

TEST_F(WorkerPoolTest, AJobPastItsDeadlineIsKilled) {
  start(kOne);
  const auto before = workers();
  stopAll();
  submit("slow", {}, Milliseconds(50));
  runUntilDone(1);
  EXPECT_EQ(outcomes_[0].error, "io.btfd.DeadlineExceeded");
  EXPECT_EQ(outcomes_[0].parameters.at("deadlineMs"), 50);
  EXPECT_THAT(outcomes_[0].parameters.at("message").get<std::string>(), HasSubstr("killed"));
  EXPECT_THAT(lost_, ElementsAre(HasSubstr("deadline")));
  runUntil([&] { return workers().size() == 1 && workers() != before; });
}

TEST_F(WorkerPoolTest, AWorkerThatDoesNotEndAtItsDeadlineHoldsUpNobody) {
  start({.count = 1, .maximumCount = 1, .queueLimit = 16, .killGrace = Milliseconds(500)});
  const pid_t worker = workers().at(0);
  const UnkillableProcess unkillable(worker);
  submit("stuck", {1, 0}, Milliseconds(50));
  submit("patient", {2, 0});
  runUntilDone(2);
  EXPECT_THAT(doneNames(), ElementsAre("patient", "stuck")) << "by another worker, at once";
  EXPECT_EQ(outcomes_[0].error, "io.btfd.InvalidObject");
  EXPECT_EQ(outcomes_[1].error, "io.btfd.DeadlineExceeded");
  EXPECT_THAT(outcomes_[1].parameters.at("message").get<std::string>(), HasSubstr("waits in the kernel"));
  EXPECT_THAT(lost_, ElementsAre(HasSubstr("does not end")));
  EXPECT_THAT(workers(), testing::Contains(worker));
}

TEST_F(WorkerPoolTest, AWorkerThatDoesNotEndCountsForItsParty) {
  start({.count = 1, .maximumCount = 1, .queueLimit = 16, .killGrace = Milliseconds(10)});
  auto unkillable = std::make_optional<UnkillableProcess>(workers().at(0));
  submit("stuck", {1, 0}, Milliseconds(10));
  runUntilDone(1);
  submit("waits", {1, 0});
  submit("another's", {2, 0});
  runUntilDone(2);
  EXPECT_THAT(doneNames(), ElementsAre("stuck", "another's"));
  EXPECT_EQ(pool_->queuedJobs(), 1U);
  unkillable.reset();
  runUntilDone(3);
}

TEST_F(WorkerPoolTest, ACancelledJobWhoseWorkerDoesNotEndHoldsUpNobody) {
  start(kOne);
  const UnkillableProcess unkillable(workers().at(0));
  const auto id = submit("cancelled", {1, 0});
  submit("kept", {2, 0});
  pool_->cancel(id);
  runUntilDone(1);
  EXPECT_THAT(doneNames(), ElementsAre("kept"));
}

TEST_F(WorkerPoolTest, TimeInTheQueueCounts) {
  start(kOne);
  stopAll();
  submit("long");
  submit("short", {}, Milliseconds(50));
  submit("patient");
  EXPECT_EQ(pool_->queuedJobs(), 2U);
  runUntilDone(1);
  EXPECT_EQ(outcomes_[0].name, "short");
  EXPECT_EQ(outcomes_[0].error, "io.btfd.DeadlineExceeded");
  EXPECT_THAT(outcomes_[0].parameters.at("message").get<std::string>(), HasSubstr("waited"));
  EXPECT_EQ(pool_->queuedJobs(), 1U);
  resumeAll();
  runUntilDone(3);
  EXPECT_EQ(outcomes_[1].name, "long");
  EXPECT_EQ(outcomes_[2].name, "patient");
}

TEST_F(WorkerPoolTest, PastTheQueueLimitItIsBusy) {
  start({.count = 1, .maximumCount = 1, .queueLimit = 2});
  stopAll();
  for (const char* name : {"running", "first", "second", "refused"}) {
    submit(name);
  }
  EXPECT_THAT(outcomes_, IsEmpty()) << "not from within submit";
  runUntilDone(1);
  EXPECT_EQ(outcomes_[0].name, "refused");
  EXPECT_EQ(outcomes_[0].error, "io.btfd.Busy");
  EXPECT_EQ(outcomes_[0].parameters.at("waiting"), 2);
  resumeAll();
  runUntilDone(4);
}

TEST_F(WorkerPoolTest, AFullQueueRefusesThoseWhoFillIt) {
  start({.count = 1, .maximumCount = 1, .queueLimit = 2});
  stopAll();
  for (const char* name : {"running", "first", "second", "refused"}) {
    submit(name);
  }
  submit("of another", {1, 0});
  submit("of another again", {1, 0});
  runUntilDone(2);
  EXPECT_EQ(outcomes_[0].name, "refused");
  EXPECT_EQ(outcomes_[1].name, "of another again");
  EXPECT_EQ(pool_->queuedJobs(), 3U);
  resumeAll();
  runUntilDone(6);
}

TEST_F(WorkerPoolTest, ACancelledJobInTheQueueIsForgotten) {
  start(kOne);
  stopAll();
  submit("running");
  const auto id = submit("cancelled");
  submit("kept");
  pool_->cancel(id);
  EXPECT_EQ(pool_->queuedJobs(), 1U);
  resumeAll();
  runUntilDone(2);
  runFor(Milliseconds(50));
  EXPECT_THAT(doneNames(), ElementsAre("running", "kept"));
}

TEST_F(WorkerPoolTest, ACancelledJobAtWorkTakesItsWorkerAlong) {
  start(kOne);
  const auto before = workers();
  stopAll();
  const auto id = submit("cancelled");
  submit("kept");
  pool_->cancel(id);
  runUntilDone(1);
  EXPECT_THAT(doneNames(), ElementsAre("kept"));
  EXPECT_NE(workers(), before);
  EXPECT_THAT(lost_, IsEmpty()) << "it was killed on purpose";
}

TEST_F(WorkerPoolTest, CancellingWhatIsDoneOrUnknownDoesNothing) {
  start(kOne);
  const auto before = workers();
  const auto id = submit("done");
  runUntilDone(1);
  pool_->cancel(id);
  pool_->cancel(4242);
  submit("next");
  runUntilDone(2);
  EXPECT_EQ(workers(), before);
}

TEST_F(WorkerPoolTest, PartiesTakeTurns) {
  start(kOne);
  stopAll();
  for (const char* name : {"a1", "a2", "a3", "a4"}) {
    submit(name, {1, 0});
  }
  for (const char* name : {"b1", "b2"}) {
    submit(name, {2, 0});
  }
  resumeAll();
  runUntilDone(6);
  EXPECT_THAT(doneNames(), ElementsAre("a1", "a2", "b1", "a3", "b2", "a4"));
}

TEST_F(WorkerPoolTest, OnePartyCannotTakeAllWorkers) {
  start(kTwo);
  stopAll();
  submit("a1", {1, 0});
  submit("a2", {1, 0});
  EXPECT_EQ(pool_->runningJobs(), 1U);
  submit("b1", {2, 0});
  EXPECT_EQ(pool_->runningJobs(), 2U);
  resumeAll();
  runUntilDone(3);
}

TEST_F(WorkerPoolTest, WhatAJobThrowsIsItsWorkersEnd) {
  start(kTwo);
  Job job;
  job.body["job"] = "load"; // without parameters: a bug of the front
  job.deadline = std::chrono::seconds(60);
  std::string error;
  job.done = [&](loader::Outcome<loader::ChannelMessage> outcome, const Job&) {
    error = outcome ? "none" : outcome.error().error;
  };
  pool_->submit(std::move(job));
  runUntil([&] { return !error.empty(); });
  EXPECT_EQ(error, "io.btfd.WorkerLost");
  EXPECT_THAT(lost_, ElementsAre(HasSubstr("exited with status 1")));
}

TEST_F(WorkerPoolTest, AJobCanBeSubmittedAgainWhenItIsDone) {
  start(kOne);
  int runs = 0;
  std::function<void(loader::Outcome<loader::ChannelMessage>, Job)> again;
  again = [&](const loader::Outcome<loader::ChannelMessage>&, Job job) {
    if (++runs < 3) {
      job.done = again;
      pool_->submit(std::move(job));
    }
  };
  Job job;
  job.body["job"] = "load";
  job.body["parameters"]["objectFileDescriptor"] = 0;
  job.descriptors.push_back(test_support::memfdOf("no object"));
  job.deadline = std::chrono::seconds(60);
  job.done = again;
  pool_->submit(std::move(job));
  runUntil([&] { return runs == 3; });
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(WorkerPoolTest, DestroyingItKillsAllWorkers) {
  start(kTwo);
  const auto pids = workers();
  stopAll();
  submit("never done");
  pool_.reset();
  for (const pid_t pid : pids) {
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFSIGNALED(status));
  }
  runFor(Milliseconds(20));
  EXPECT_THAT(outcomes_, IsEmpty());
}

TEST_F(WorkerPoolTest, WorkersInheritNothingButStandardErrorAndTheirChannel) {
  const UniqueFd secret = test_support::memfdOf("secret");
  start(kOne);
  submit("a job, after which it has begun for sure");
  runUntilDone(1);
  const auto directory = "/proc/" + std::to_string(workers().at(0)) + "/fd";
  std::vector<std::string> names;
  // The job's own descriptor is closed only after the answer.
  runUntil([&] {
    names.clear();
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      names.push_back(entry.path().filename());
    }
    return names.size() <= 4;
  });
  EXPECT_THAT(names, testing::UnorderedElementsAre("0", "1", "2", "3"));
}

TEST_F(WorkerPoolTest, WorkersDoNotEvenHaveToCloseWhatTheFrontHas) {
  start(kOne);
  const pid_t before = workers().at(0);
  const UniqueFd secret = test_support::memfdOf("secret");
  stopAtBirth(true);
  ASSERT_EQ(::kill(before, SIGKILL), 0);
  runUntil([&] { return workers().size() == 1 && workers().at(0) != before; });
  const pid_t stopped = workers().at(0);
  ASSERT_EQ(::waitpid(stopped, nullptr, WUNTRACED), stopped);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(stopped) + "/fd")) {
    EXPECT_THAT(std::filesystem::read_symlink(entry.path()).string(), testing::Not(HasSubstr("memfd")));
  }
  resume(stopped);
}

} // namespace
} // namespace btfd::service
