#include "btfctl/duration.h"

#include <gmock/gmock.h>

namespace btfd::btfctl {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST(ParseDuration, ReadsNumbersWithUnits) {
  EXPECT_EQ(parseDuration("500ms").value(), milliseconds(500));
  EXPECT_EQ(parseDuration("10s").value(), milliseconds(10'000));
  EXPECT_EQ(parseDuration("2min").value(), milliseconds(120'000));
  EXPECT_EQ(parseDuration("1min30s").value(), milliseconds(90'000));
  EXPECT_EQ(parseDuration("24h").value(), milliseconds(86'400'000));
}

TEST(ParseDuration, WhatIsNoDurationIsAnErrorThatSaysWhy) {
  const auto whyNot = [](std::string_view text) { return parseDuration(text).error().message; };
  EXPECT_THAT(whyNot(""), HasSubstr("it is empty"));
  EXPECT_THAT(whyNot("10"), HasSubstr("'10' is not a duration: the unit is missing"));
  EXPECT_THAT(whyNot("10m"), HasSubstr("none of ms, s, min and h"));
  EXPECT_THAT(whyNot("1.5s"), HasSubstr("none of ms, s, min and h"));
  EXPECT_THAT(whyNot("s"), HasSubstr("whole numbers"));
  EXPECT_THAT(whyNot("-1s"), HasSubstr("whole numbers"));
  EXPECT_THAT(whyNot("0s"), HasSubstr("more than zero"));
}

TEST(ParseDuration, MoreThanADayIsAnErrorHoweverItIsWritten) {
  for (const auto* text : {"25h", "24h1ms", "99999999999999999999s", "9223372036854775807h", "86400001ms"}) {
    const auto duration = parseDuration(text);
    ASSERT_FALSE(duration) << text;
    EXPECT_THAT(duration.error().message, HasSubstr("the longest is 24h")) << text;
  }
}

} // namespace
} // namespace btfd::btfctl
