#include "service/image_cache.h"
#include "test_support/files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include <sys/resource.h>

namespace btfd::service {
namespace {

constexpr std::size_t kPlenty = std::size_t{1} << 30U;
constexpr uid_t kAlice = 1000;
constexpr uid_t kBob = 1001;

ImageCache::Image image(const std::string& digest, std::uint64_t generation = 1, std::size_t bytes = 100'000) {
  return {.digest = digest,
          .generation = generation,
          .bytes = bytes,
          .memfd = std::make_shared<const UniqueFd>(test_support::memfdOf(digest))};
}

std::string guessed(ImageCache& cache, uid_t owner, const std::string& name, std::uint64_t generation = 1) {
  const auto image = cache.guess(owner, name, generation);
  return image ? image->digest : "";
}

TEST(ImageCache, GuessesWhatTheOwnerLoadedLastUnderTheName) {
  ImageCache cache;
  EXPECT_EQ(guessed(cache, kAlice, "probe"), "");
  cache.keep(kAlice, "probe", image("one"), kPlenty);
  cache.keep(kAlice, "other", image("two"), kPlenty);
  EXPECT_EQ(guessed(cache, kAlice, "probe"), "one");
  EXPECT_EQ(guessed(cache, kAlice, "other"), "two");
  EXPECT_EQ(guessed(cache, kBob, "probe"), "");
  cache.keep(kAlice, "probe", image("two"), kPlenty);
  EXPECT_EQ(guessed(cache, kAlice, "probe"), "two");
}

TEST(ImageCache, KeepsAnImageOnceWhoeverLoadsIt) {
  ImageCache cache;
  cache.keep(kAlice, "probe", image("one"), kPlenty);
  const std::size_t bytes = cache.bytes();
  const auto first = cache.guess(kAlice, "probe", 1);
  cache.keep(kBob, "copy", image("one"), kPlenty);
  EXPECT_EQ(cache.size(), 1U);
  EXPECT_EQ(cache.bytes(), bytes);
  const auto second = cache.guess(kBob, "copy", 1);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->memfd, second->memfd);
}

TEST(ImageCache, AnImageIsForTheKernelBtfThatItWasRelocatedFor) {
  ImageCache cache;
  cache.keep(kAlice, "probe", image("one", 1), kPlenty);
  EXPECT_EQ(guessed(cache, kAlice, "probe", 2), "");
  cache.keep(kAlice, "probe", image("one", 2), kPlenty);
  EXPECT_EQ(guessed(cache, kAlice, "probe", 2), "one");
  EXPECT_EQ(cache.size(), 1U);
  cache.keep(kAlice, "filter", image("asks nothing", 0), kPlenty);
  EXPECT_EQ(guessed(cache, kAlice, "filter", 3), "asks nothing");
}

TEST(ImageCache, WhatWasNotUsedForLongestGoesFirst) {
  ImageCache cache;
  constexpr std::size_t kForTwo = 250'000;
  cache.keep(kAlice, "a", image("a"), kForTwo);
  cache.keep(kAlice, "b", image("b"), kForTwo);
  EXPECT_EQ(guessed(cache, kAlice, "a"), "a");
  cache.keep(kAlice, "c", image("c"), kForTwo);
  EXPECT_EQ(guessed(cache, kAlice, "a"), "a");
  EXPECT_EQ(guessed(cache, kAlice, "b"), "");
  EXPECT_EQ(guessed(cache, kAlice, "c"), "c");
  EXPECT_LE(cache.bytes(), kForTwo);
}

TEST(ImageCache, WhatIsTooLargeIsNotKeptAndALowerLimitHoldsAtOnce) {
  ImageCache cache;
  cache.keep(kAlice, "a", image("a"), kPlenty);
  cache.keep(kAlice, "b", image("b", 1, 1000), 0);
  EXPECT_EQ(cache.size(), 0U);
  EXPECT_EQ(cache.bytes(), 0U);
  EXPECT_EQ(guessed(cache, kAlice, "a"), "");
}

TEST(ImageCache, SmallImagesAreBoundedToo) {
  ImageCache cache;
  for (int i = 0; i < 1000; ++i) {
    cache.keep(kAlice, "probe", image(std::to_string(i), 1, 1), 100'000);
  }
  EXPECT_LT(cache.size(), 100U);
}

TEST(ImageCache, DescriptorsAreBounded) {
  struct rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  ImageCache cache;
  const auto memfd = std::make_shared<const UniqueFd>(test_support::memfdOf("shared"));
  for (std::size_t i = 0; i < 2 * ImageCache::kMostImages; ++i) {
    cache.keep(kAlice, "probe", {.digest = std::to_string(i), .generation = 1, .bytes = 1, .memfd = memfd}, kPlenty);
  }
  EXPECT_LE(cache.size(), std::min<std::size_t>(ImageCache::kMostImages, limit.rlim_max / 4));
}

TEST(ImageCache, ALowerLimitCanBeSet) {
  ImageCache cache;
  cache.keep(kAlice, "a", image("a"), kPlenty);
  cache.trim(0);
  EXPECT_EQ(cache.size(), 0U);
}

TEST(ImageCache, NamesAreBounded) {
  ImageCache cache;
  cache.keep(kAlice, "first", image("one"), kPlenty);
  for (int i = 0; i < 10'000; ++i) {
    cache.keep(kAlice, std::to_string(i), image("one"), kPlenty);
  }
  EXPECT_EQ(guessed(cache, kAlice, "first"), "") << "forgotten, but only what to call it";
  EXPECT_EQ(guessed(cache, kAlice, "9999"), "one");
  EXPECT_EQ(cache.size(), 1U);
}

} // namespace
} // namespace btfd::service
