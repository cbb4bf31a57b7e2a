#include "base/near_misses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace btfd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Names = std::vector<std::string>;

TEST(EditDistance, CountsInsertionsDeletionsAndReplacements) {
  EXPECT_EQ(editDistance("", ""), 0U);
  EXPECT_EQ(editDistance("abc", ""), 3U);
  EXPECT_EQ(editDistance("", "abc"), 3U);
  EXPECT_EQ(editDistance("state", "__state"), 2U);
  EXPECT_EQ(editDistance("kitten", "sitting"), 3U);
  EXPECT_EQ(editDistance("same", "same"), 0U);
}

TEST(NearMisses, NearestFirst) {
  EXPECT_THAT(nearMisses("on_exex", Names{"on_exit", "on_exec"}), ElementsAre("on_exec", "on_exit"));
}

TEST(NearMisses, EquallyNearOnesAreInTheirOwnOrder) {
  EXPECT_THAT(nearMisses("probe", Names{"probe_b", "probe_a"}), ElementsAre("probe_a", "probe_b"));
}

TEST(NearMisses, AtMostThree) {
  EXPECT_THAT(nearMisses("prog", Names{"prog1", "prog2", "prog3", "prog4"}), ElementsAre("prog1", "prog2", "prog3"));
}

TEST(NearMisses, OtherNamesAreNotOffered) {
  EXPECT_THAT(nearMisses("exec_count", Names{"sockets", "x"}), IsEmpty());
  EXPECT_THAT(nearMisses("exec_count", Names{}), IsEmpty());
}

TEST(NearMisses, ShortNamesMayHaveTwoSlips) {
  EXPECT_THAT(nearMisses("ab", Names{"ba", "xyz"}), ElementsAre("ba"));
}

TEST(DidYouMean, NamesThemAllOrSaysNothing) {
  EXPECT_EQ(didYouMean(Names{"on_exec", "on_exit"}), "; did you mean 'on_exec' or 'on_exit'?");
  EXPECT_EQ(didYouMean(Names{}), "");
}

TEST(NearMisses, ANameThatNobodyWritesHasNone) {
  const std::string endless(std::size_t{16} << 20U, 'a');
  EXPECT_THAT(nearMisses(endless, std::vector<std::string>(3, endless.substr(1))), IsEmpty());
}

TEST(NearMisses, LongNamesHaveNone) {
  const std::string longest(128, 'a');
  EXPECT_THAT(nearMisses(longest, Names{longest + "b"}), ElementsAre(longest + "b"));
  EXPECT_THAT(nearMisses(longest + "a", Names{longest + "b"}), IsEmpty());
}

} // namespace
} // namespace btfd
