#include "btfctl/outcome.h"

#include <gmock/gmock.h>

namespace btfd::btfctl {
namespace {

TEST(ExitStatus, FollowsTheErrorOfTheDaemon) {
  EXPECT_EQ(exitStatusOf("io.btfd.NoSuchObject"), ExitStatus::NotFound);
  EXPECT_EQ(exitStatusOf("io.btfd.NoSuchLink"), ExitStatus::NotFound);
  EXPECT_EQ(exitStatusOf("io.btfd.NoSuchName"), ExitStatus::NotFound);
  EXPECT_EQ(exitStatusOf("io.btfd.NotOwner"), ExitStatus::Denied);
  EXPECT_EQ(exitStatusOf("org.varlink.service.PermissionDenied"), ExitStatus::Denied);
  EXPECT_EQ(exitStatusOf("io.btfd.Busy"), ExitStatus::TryAgain);
  EXPECT_EQ(exitStatusOf("io.btfd.DeadlineExceeded"), ExitStatus::TryAgain);
  EXPECT_EQ(exitStatusOf("io.btfd.WorkerLost"), ExitStatus::TryAgain);
}

TEST(ExitStatus, ErrorsWithoutOneOfTheirOwnAreFailures) {
  EXPECT_EQ(exitStatusOf("io.btfd.LoadFailed"), ExitStatus::Failed);
  EXPECT_EQ(exitStatusOf("io.btfd.OfALaterVersion"), ExitStatus::Failed);
  EXPECT_EQ(exitStatusOf("org.example.NotOwner"), ExitStatus::Failed);
}

TEST(ExitStatus, HelpDocumentsEach) {
  for (int status = 0; status <= static_cast<int>(ExitStatus::TryAgain); ++status) {
    EXPECT_THAT(exitStatusHelp(), testing::HasSubstr("\n  " + std::to_string(status) + "  "));
  }
}

TEST(Failure, KeepsTheFieldsOfTheDaemon) {
  const Failure failure = refused("io.btfd.Busy", {{"message", "no"}, {"waiting", 3}}).error();
  EXPECT_EQ(failure.status, ExitStatus::TryAgain);
  EXPECT_EQ(failure.name, "io.btfd.Busy");
  EXPECT_EQ(failure.parameters["waiting"], 3);
}

TEST(Failure, OwnErrorsHaveNamesThatNoInterfaceHas) {
  EXPECT_EQ(failed(ExitStatus::Unreachable, "gone").error().name, "btfctl.Unreachable");
  EXPECT_EQ(misused(Error{"no such key"}).error().name, "btfctl.Usage");
  EXPECT_EQ(misused(Error{"no such key"}).error().status, ExitStatus::Usage);
}

} // namespace
} // namespace btfd::btfctl
