#include "btfctl/output_file.h"
#include "test_support/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include <sys/stat.h>
#include <unistd.h>

namespace btfd::btfctl {
namespace {

namespace fs = std::filesystem;

using test_support::bytesOf;
using test_support::readFile;
using testing::HasSubstr;

// Users and groups that no system has.
constexpr uid_t kSomebody = 61'501;
constexpr gid_t kSomeGroup = 61'502;
constexpr gid_t kOtherGroup = 61'503;

struct stat statusOf(const std::string& path) {
  struct stat status{};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status;
}

class OutputFileTest : public testing::Test {
 protected:
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory_.path()), fs::directory_iterator()));
  }

  test_support::TemporaryDirectory directory_;
  const std::string path_ = directory_ / "out";
  std::ostringstream out_;
};

TEST_F(OutputFileTest, IsMadeAsOpenMakesFiles) {
  ASSERT_TRUE(writeOutput(path_, bytesOf("new"), out_));
  EXPECT_EQ(readFile(path_), bytesOf("new"));
  const mode_t mask = ::umask(0);
  ::umask(mask);
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms(0666 & ~mask));
  EXPECT_EQ(files(), 1U);
}

TEST_F(OutputFileTest, ReplacesAFileAndKeepsItsMode) {
  test_support::writeFile(path_, "something longer");
  fs::permissions(path_, fs::perms::owner_read);
  ASSERT_TRUE(writeOutput(path_, bytesOf("new"), out_));
  EXPECT_EQ(readFile(path_), bytesOf("new"));
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read);
  EXPECT_EQ(files(), 1U);
}

TEST_F(OutputFileTest, SetsNoUserId) {
  test_support::writeFile(path_, "of somebody else, and now to be made by root");
  fs::permissions(path_, fs::perms::set_uid | fs::perms::set_gid | fs::perms::owner_all);
  ASSERT_TRUE(writeOutput(path_, bytesOf("new"), out_));
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_all);
}

TEST_F(OutputFileTest, ReplacesWhatALinkRefersTo) {
  test_support::writeFile(directory_ / "real", "old");
  fs::create_symlink("real", path_);
  ASSERT_TRUE(writeOutput(path_, bytesOf("new"), out_));
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(readFile(directory_ / "real"), bytesOf("new"));
}

TEST_F(OutputFileTest, KeepsOwnerAndGroupOfTheFileThatItReplaces) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to give a file to somebody";
  }
  test_support::writeFile(path_, "old");
  fs::create_symlink("out", directory_ / "link");
  ASSERT_EQ(::chown(path_.c_str(), kSomebody, kSomeGroup), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 0640), 0);
  for (const std::string& path : {path_, directory_ / "link"}) {
    ASSERT_TRUE(writeOutput(path, bytesOf("new"), out_));
    const struct stat status = statusOf(path_);
    EXPECT_EQ(status.st_uid, kSomebody);
    EXPECT_EQ(status.st_gid, kSomeGroup);
    EXPECT_EQ(status.st_mode & 07777U, 0640U);
  }
}

TEST_F(OutputFileTest, GivesNobodyMoreThanTheFileThatItReplaces) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to be somebody else";
  }
  test_support::writeFile(path_, "old");
  ASSERT_EQ(::chown(path_.c_str(), 0, kSomeGroup), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 0664), 0);
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0777), 0);
  ASSERT_EQ(::setegid(kOtherGroup), 0);
  ASSERT_EQ(::seteuid(kSomebody), 0);
  const auto written = writeOutput(path_, bytesOf("new"), out_);
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_EQ(::setegid(0), 0);
  ASSERT_TRUE(written) << written.error().message;
  const struct stat status = statusOf(path_);
  EXPECT_EQ(status.st_uid, kSomebody);
  EXPECT_EQ(status.st_gid, kOtherGroup);
  EXPECT_EQ(status.st_mode & 07777U, 0644U); // the group that could write is not its group any more
}

TEST_F(OutputFileTest, DoesNotReplaceALinkThatLeadsNowhere) {
  fs::create_symlink("none", path_);
  const auto written = writeOutput(path_, bytesOf("new"), out_);
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message,
              HasSubstr("cannot write " + path_ + ": it is a symbolic link to none, which does not exist"));
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(files(), 1U);
}

TEST_F(OutputFileTest, DoesNotReplaceALinkThatLeadsToItself) {
  fs::create_symlink("out", path_);
  EXPECT_FALSE(writeOutput(path_, bytesOf("new"), out_));
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(files(), 1U);
}

TEST_F(OutputFileTest, LeavesDevicesWhatTheyAre) {
  ASSERT_TRUE(writeOutput("/dev/null", bytesOf("new"), out_));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const auto full = writeOutput("/dev/full", bytesOf("new"), out_);
  ASSERT_FALSE(full);
  EXPECT_THAT(full.error().message, HasSubstr("/dev/full: No space left"));
}

TEST_F(OutputFileTest, MayBeStandardOutput) {
  ASSERT_TRUE(writeOutput("-", bytesOf("new"), out_));
  EXPECT_EQ(out_.str(), "new");
  EXPECT_EQ(files(), 0U);
}

TEST_F(OutputFileTest, CannotBeWhereNoFileCanBe) {
  for (const std::string& path : {directory_ / "none/out", directory_.path()}) {
    const auto written = writeOutput(path, bytesOf("new"), out_);
    ASSERT_FALSE(written);
    EXPECT_THAT(written.error().message, HasSubstr("cannot write " + path + ": "));
  }
  EXPECT_EQ(files(), 0U);
}

TEST_F(OutputFileTest, IsTheSameByWhateverName) {
  test_support::writeFile(path_, "content");
  test_support::writeFile(directory_ / "other", "content");
  fs::create_symlink("out", directory_ / "link");
  EXPECT_TRUE(isSameFile(directory_ / "link", directory_ / "./out"));
  EXPECT_FALSE(isSameFile(directory_ / "other", path_));
  EXPECT_FALSE(isSameFile(directory_ / "none", directory_ / "none"));
  EXPECT_FALSE(isSameFile("-", "-"));
}

} // namespace
} // namespace btfd::btfctl
