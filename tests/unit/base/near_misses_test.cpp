#include "base/near_misses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

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

/// What the definition says, for names that bits are enough for and for longer ones.
TEST(EditDistance, IsTheSameForAnyLength) {
  const auto byDefinition = [](std::string_view from, std::string_view to) {
    std::vector<std::vector<std::size_t>> table(from.size() + 1, std::vector<std::size_t>(to.size() + 1));
    for (std::size_t i = 0; i <= from.size(); ++i) {
      for (std::size_t j = 0; j <= to.size(); ++j) {
        table[i][j] = i == 0   ? j
                      : j == 0 ? i
                               : std::min({table[i - 1][j] + 1, table[i][j - 1] + 1,
                                           table[i - 1][j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1)});
      }
    }
    return table[from.size()][to.size()];
  };
  std::minstd_rand random(1);
  const auto name = [&](std::size_t size) {
    std::string text(size, ' ');
    std::ranges::generate(text, [&] { return static_cast<char>('a' + random() % 4); });
    return text;
  };
  for (const std::size_t size : {1U, 2U, 7U, 31U, 63U, 64U, 65U, 100U}) {
    for (const std::size_t other : {0U, 1U, 8U, 62U, 64U, 66U, 90U}) {
      const std::string from = name(size);
      const std::string to = name(other);
      EXPECT_EQ(editDistance(from, to), byDefinition(from, to)) << from << " " << to;
    }
  }
}

TEST(NearMisses, EachOnce) {
  EXPECT_THAT(nearMisses("prog", Names{"prog1", "prog2", "prog1"}), ElementsAre("prog1", "prog2"));
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

TEST(NearMisses, OtherSlipsMayBeTaken) {
  EXPECT_THAT(nearMisses("ab", Names{"ba", "aB", "b"}, {.atLeast = 1}), ElementsAre("aB", "b"));
  EXPECT_THAT(nearMisses("BA", Names{"ba", "bab", "Bb"}, {.anyCase = true, .atLeast = 1}),
              ElementsAre("ba", "Bb", "bab"));
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
  const std::string longest(64, 'a');
  EXPECT_THAT(nearMisses(longest, Names{longest + "b"}), ElementsAre(longest + "b"));
  EXPECT_THAT(nearMisses(longest + "a", Names{longest + "b"}), IsEmpty());
}

} // namespace
} // namespace btfd
