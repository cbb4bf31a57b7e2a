#include "loader/perf_event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace btfd::loader {
namespace {

using testing::HasSubstr;

nlohmann::json event(const std::string& type, const std::string& name) {
  return {{"type", type}, {"event", name}, {"frequency", 99}};
}

Error errorOf(const nlohmann::json& request) {
  auto read = readPerfEvent(request);
  return read ? Error{} : read.error();
}

TEST(PerfEvent, AnUnknownTypeIsRefused) {
  const Error error = errorOf(event("tracepoint", "cpu-clock"));
  EXPECT_EQ(error.code, EINVAL);
  EXPECT_THAT(error.message, HasSubstr("software or hardware"));
}

TEST(PerfEvent, AnUnknownNameIsRefusedWithTheNearest) {
  const Error error = errorOf(event("software", "cpu-clok"));
  EXPECT_EQ(error.code, EINVAL);
  EXPECT_THAT(error.message, HasSubstr("did you mean 'cpu-clock'?"));
}

TEST(PerfEvent, ANameOfTheOtherTypeIsRefused) {
  EXPECT_EQ(errorOf(event("software", "instructions")).code, EINVAL);
  EXPECT_EQ(errorOf(event("hardware", "cpu-clock")).code, EINVAL);
}

TEST(PerfEvent, NeedsEitherFrequencyOrPeriod) {
  const nlohmann::json neither = {{"type", "software"}, {"event", "cpu-clock"}};
  EXPECT_EQ(errorOf(neither).code, EINVAL);
  auto both = event("software", "cpu-clock");
  both["period"] = 1000;
  EXPECT_EQ(errorOf(both).code, EINVAL);
  auto zero = neither;
  zero["period"] = 0;
  EXPECT_EQ(errorOf(zero).code, EINVAL);
  auto negative = neither;
  negative["frequency"] = -1;
  EXPECT_EQ(errorOf(negative).code, EINVAL);
}

TEST(PerfEvent, ACpuThatIsNotThereIsRefused) {
  auto request = event("software", "cpu-clock");
  request["cpu"] = 100'000;
  EXPECT_THAT(errorOf(request).message, HasSubstr("no CPU 100000"));
  request["cpu"] = -1;
  EXPECT_EQ(errorOf(request).code, EINVAL);
}

TEST(PerfEvent, APidThatCanBeNoneIsRefused) {
  auto request = event("software", "cpu-clock");
  // Cut to 32 bits it would be process 1.
  request["pid"] = (std::int64_t{1} << 32) + 1;
  EXPECT_EQ(errorOf(request).code, EINVAL);
  request["pid"] = -5;
  EXPECT_EQ(errorOf(request).code, EINVAL);
}

TEST(PerfEvent, OpensOneOnEachCpu) {
  const auto read = readPerfEvent(event("software", "cpu-clock"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->description, "cpu-clock at 99 Hz on each CPU");
  const auto opened = openPerfEvent(*read);
  if (!opened && (opened.error().code == EACCES || opened.error().code == EPERM || opened.error().code == ENOSYS)) {
    GTEST_SKIP() << "perf events are not permitted here: " << opened.error().message;
  }
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_GE(opened->size(), 1U);
}

TEST(PerfEvent, OpensOneOnTheCpuThatIsNamed) {
  const nlohmann::json request = {{"type", "software"}, {"event", "page-faults"}, {"period", 1000}, {"cpu", 0}};
  const auto read = readPerfEvent(request);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->description, "page-faults each 1000 events on CPU 0");
  const auto opened = openPerfEvent(*read);
  if (!opened && (opened.error().code == EACCES || opened.error().code == EPERM || opened.error().code == ENOSYS)) {
    GTEST_SKIP() << "perf events are not permitted here: " << opened.error().message;
  }
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->size(), 1U);
}

} // namespace
} // namespace btfd::loader
