#include "service/pins.h"
#include "test_support/files.h"

#include <bpf/bpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

namespace btfd::service {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A bpffs of the test's own, which nobody outside of this process sees.
class PinsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("bpf", directory_.path().c_str(), "bpf", 0, nullptr) != 0) {
      GTEST_SKIP() << "cannot mount a bpffs: " << std::strerror(errno);
    }
    mounted_ = true;
    map_.reset(bpf_map_create(BPF_MAP_TYPE_ARRAY, "pinned", 4, 4, 1, nullptr));
    if (!map_) {
      GTEST_SKIP() << "bpf(2) is not permitted: " << std::strerror(errno);
    }
    bpffs_ = directory_ / "btfd";
    ASSERT_TRUE(prepareBpffs(bpffs_));
  }

  void TearDown() override {
    if (mounted_) {
      ::umount2(directory_.path().c_str(), MNT_DETACH);
    }
  }

  /// Pins a map as `owner` and returns where.
  std::string pin(const Pins& pins, uid_t owner, const std::string& name) {
    const std::string directory = pins.directoryOf(owner);
    ::mkdir(directory.c_str(), 0700);
    std::string path = directory + "/" + name;
    EXPECT_EQ(bpf_obj_pin(map_.get(), path.c_str()), 0) << path;
    return path;
  }

  static bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

  test_support::TemporaryDirectory directory_;
  std::string bpffs_;
  UniqueFd map_;
  bool mounted_ = false;
};

TEST_F(PinsTest, PreparingTwiceIsFine) {
  EXPECT_TRUE(prepareBpffs(bpffs_));
  EXPECT_TRUE(exists(bpffs_ + "/owners"));
}

TEST_F(PinsTest, OwnersHaveDirectoriesOfTheirOwn) {
  const Pins pins(bpffs_);
  EXPECT_EQ(pins.directoryOf(0), bpffs_ + "/owners/0");
  EXPECT_EQ(pins.directoryOf(1000), bpffs_ + "/owners/1000");
}

TEST_F(PinsTest, SweepingKeepsWhatIsInUse) {
  const Pins pins(bpffs_);
  registry::Registry registry;
  registry::Object object;
  object.pinned = {pin(pins, 1000, "used")};
  const std::uint64_t id = registry.add(std::move(object)).id;
  const std::string unused = pin(pins, 1000, "unused");
  const std::string others = pin(pins, 1001, "unused");
  pins.sweep(1000, registry);
  EXPECT_TRUE(exists(pins.directoryOf(1000) + "/used"));
  EXPECT_FALSE(exists(unused));
  EXPECT_TRUE(exists(others)) << "another owner's pins are not looked at";
  registry.take(id);
  pins.sweep(1000, registry);
  EXPECT_FALSE(exists(pins.directoryOf(1000))) << "an empty directory goes, too";
}

TEST_F(PinsTest, SweepingAllRemovesWhatAnEarlierDaemonLeft) {
  const Pins pins(bpffs_);
  pin(pins, 0, "old");
  pin(pins, 1000, "old");
  pins.sweepAll({});
  EXPECT_FALSE(exists(bpffs_ + "/owners/0"));
  EXPECT_FALSE(exists(bpffs_ + "/owners/1000"));
}

TEST_F(PinsTest, ThereIsNothingToSweepAtFirst) {
  const Pins pins(bpffs_);
  pins.sweep(1000, {});
  pins.sweepAll({});
  EXPECT_TRUE(exists(bpffs_));
}

TEST_F(PinsTest, AnOwnerCanPinAgainAfterAllWasSwept) {
  const Pins pins(bpffs_);
  pins.sweepAll({});
  ASSERT_TRUE(prepareBpffs(bpffs_));
  EXPECT_TRUE(exists(pin(pins, 1000, "again")));
}

TEST(PrepareBpffs, ADirectoryThatIsOnNoBpffsIsLeftAloneAndAnotherAdvised) {
  const test_support::TemporaryDirectory directory;
  const auto prepared = prepareBpffs(directory / "btfd");
  ASSERT_FALSE(prepared);
  EXPECT_THAT(prepared.error().message, HasSubstr(directory / "btfd" + " is not on a bpffs"));
  EXPECT_THAT(prepared.error().message, HasSubstr("/sys/fs/bpf/btfd"));
  EXPECT_THAT(prepared.error().message, Not(HasSubstr("mount -t")));
  EXPECT_FALSE(std::filesystem::exists(directory / "btfd"));
  ::mkdir((directory / "mine").c_str(), 0700);
  ASSERT_FALSE(prepareBpffs(directory / "mine"));
  EXPECT_FALSE(std::filesystem::exists(directory / "mine/owners"));
}

TEST(PrepareBpffs, WhereNoBpffsIsMountedItSaysHowToMountIt) {
  if (::unshare(CLONE_NEWNS) < 0 || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0 ||
      ::mount("none", "/sys/fs/bpf", "tmpfs", 0, nullptr) < 0) {
    GTEST_SKIP() << "mounting is not permitted: " << std::strerror(errno);
  }
  const auto prepared = prepareBpffs("/sys/fs/bpf/btfd");
  ::umount2("/sys/fs/bpf", MNT_DETACH);
  ASSERT_FALSE(prepared);
  EXPECT_THAT(prepared.error().message, HasSubstr("mount -t bpf bpf /sys/fs/bpf"));
}

TEST(PrepareBpffs, ADirectoryThatCannotBeMadeIsAnErrorThatNamesIt) {
  const auto prepared = prepareBpffs("/proc/no/such/place");
  ASSERT_FALSE(prepared);
  EXPECT_THAT(prepared.error().message, HasSubstr("/proc/no/such/place"));
}

TEST_F(PinsTest, OneDaemonADirectory) {
  auto first = lockBpffs(bpffs_);
  ASSERT_TRUE(first) << first.error().message;
  const auto second = lockBpffs(bpffs_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, EWOULDBLOCK);
  EXPECT_THAT(second.error().message, HasSubstr("another btfd uses " + bpffs_));
  first->reset();
  EXPECT_TRUE(lockBpffs(bpffs_));
}

} // namespace
} // namespace btfd::service
