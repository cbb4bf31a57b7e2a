#include "loader/attach_diagnosis.h"
#include "test_support/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

namespace btfd::loader {
namespace {

using testing::HasSubstr;

/// A tracefs with two tracepoints.
class WhyNoTracepoint : public testing::Test {
 protected:
  WhyNoTracepoint() {
    std::filesystem::create_directories(places_.tracefs + "/events/sched/sched_switch");
    std::filesystem::create_directories(places_.tracefs + "/events/syscalls/sys_enter_openat");
  }

  std::string why(std::string_view category, std::string_view name) const {
    return whyNoTracepoint(category, name, ENOENT, places_);
  }

  test_support::TemporaryDirectory directory_;
  TracefsPlaces places_{.debugfs = directory_ / "debugfs", .tracefs = directory_ / "tracefs"};
};

TEST_F(WhyNoTracepoint, NamesThoseThatMayHaveBeenMeant) {
  EXPECT_EQ(why("sched", "sched_swich"),
            "the kernel has no tracepoint 'sched_swich' in category sched; did you mean 'sched_switch'?");
  EXPECT_EQ(why("sched", "nothing_like_it"), "the kernel has no tracepoint 'nothing_like_it' in category sched");
  EXPECT_EQ(why("syscall", "sys_enter_openat"),
            "the kernel has no tracepoint category 'syscall'; did you mean 'syscalls'?");
}

TEST_F(WhyNoTracepoint, SaysHowToMountTracefs) {
  std::filesystem::remove_all(places_.tracefs);
  EXPECT_THAT(why("sched", "sched_switch"), HasSubstr("mount -t tracefs tracefs " + places_.tracefs));
}

TEST_F(WhyNoTracepoint, LooksWhereLibbpfDoes) {
  std::filesystem::create_directories(places_.debugfs + "/events/net");
  EXPECT_THAT(why("sched", "sched_switch"), HasSubstr("no tracepoint category 'sched'"));
}

TEST_F(WhyNoTracepoint, HasNothingToAddToOtherErrors) {
  EXPECT_EQ(whyNoTracepoint("sched", "sched_switch", EPERM, places_), "");
}

TEST_F(WhyNoTracepoint, ATracepointIsThereIfItHasAnId) {
  EXPECT_EQ(tracepointError("sched", "sched_switch", places_), ENOENT);
  test_support::writeFile(places_.tracefs + "/events/sched/sched_switch/id", "316");
  EXPECT_EQ(tracepointError("sched", "sched_switch", places_), 0);
}

TEST(WhyNoRawTracepoint, NamesTheTracepoint) {
  EXPECT_THAT(whyNoRawTracepoint("sched_swich", ENOENT), HasSubstr("no tracepoint 'sched_swich'"));
  EXPECT_EQ(whyNoRawTracepoint("sched_switch", EINVAL), "");
}

TEST(WhyNoXdp, SaysWhatTheInterfaceCannotDo) {
  EXPECT_THAT(whyNoXdp("", EBUSY), HasSubstr("another XDP program"));
  EXPECT_THAT(whyNoXdp("offload", EINVAL), HasSubstr("native or generic"));
  EXPECT_THAT(whyNoXdp("native", EOPNOTSUPP), HasSubstr("generic"));
  EXPECT_EQ(whyNoXdp("", EINVAL), "");
  EXPECT_EQ(whyNoXdp("native", EINVAL), "");
}

PerfEvent perfEvent(const std::string& type, const std::string& name, std::int64_t frequency) {
  const auto event = readPerfEvent({{"type", type}, {"event", name}, {"frequency", frequency}});
  EXPECT_TRUE(event);
  return *event;
}

TEST(WhyNoPerfEvent, AMachineMayHaveNoCounters) {
  EXPECT_THAT(whyNoPerfEvent(perfEvent("hardware", "cpu-cycles", 99), ENOENT), HasSubstr("PMU"));
  EXPECT_EQ(whyNoPerfEvent(perfEvent("software", "cpu-clock", 99), ENOENT), "");
}

TEST(WhyNoPerfEvent, AFrequencyMayBeTooHigh) {
  EXPECT_THAT(whyNoPerfEvent(perfEvent("software", "cpu-clock", 1'000'000'000), EINVAL),
              HasSubstr("perf_event_max_sample_rate"));
  EXPECT_EQ(whyNoPerfEvent(perfEvent("software", "cpu-clock", 1), EINVAL), "");
}

} // namespace
} // namespace btfd::loader
