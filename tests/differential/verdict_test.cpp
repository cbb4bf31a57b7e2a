#include "verdict.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace btfd::differential {

namespace {

Verdict loaded(std::string tag) {
  return {.outcome = Outcome::loaded, .errnoValue = 0, .tags = {{"program", std::move(tag)}}, .text = {}};
}

Verdict refused(int value) {
  return {.outcome = Outcome::refused, .errnoValue = value, .tags = {}, .text = {}};
}

ObjectVerdicts object(Verdict whole, Verdict alone) {
  return {.whole = std::move(whole), .alone = {{"program", std::move(alone)}}};
}

TEST(Verdicts, EqualOnesHaveNoMismatch) {
  EXPECT_TRUE(compare(object(loaded("1a"), loaded("1a")), object(loaded("1a"), loaded("1a"))).empty());
  EXPECT_TRUE(compare(object(refused(EACCES), loaded("1a")), object(refused(EACCES), loaded("1a"))).empty());
}

TEST(Verdicts, AnotherTagIsAMismatchOfThatProgram) {
  const auto mismatches = compare(object(loaded("1a"), loaded("1a")), object(loaded("1a"), loaded("2b")));
  ASSERT_EQ(mismatches.size(), 1U);
  EXPECT_EQ(mismatches[0].program, "program");
}

TEST(Verdicts, AnotherErrnoIsAMismatch) {
  EXPECT_EQ(compare(object(refused(EACCES), refused(EACCES)), object(refused(ENOSPC), refused(EACCES))).size(), 1U);
}

TEST(Verdicts, LoadedAgainstRefusedIsAMismatch) {
  EXPECT_EQ(compare(object(loaded("1a"), loaded("1a")), object(refused(EPERM), refused(EPERM))).size(), 2U);
}

TEST(Verdicts, ABrokenLoaderNeverAgrees) {
  EXPECT_EQ(compare(object({}, loaded("1a")), object({}, loaded("1a"))).size(), 1U);
}

TEST(Verdicts, AProgramThatOneSideDoesNotKnowIsAMismatch) {
  const ObjectVerdicts without{.whole = loaded("1a"), .alone = {}};
  EXPECT_EQ(compare(object(loaded("1a"), loaded("1a")), without).size(), 1U);
  EXPECT_EQ(compare(without, object(loaded("1a"), loaded("1a"))).size(), 1U);
}

} // namespace

} // namespace btfd::differential
