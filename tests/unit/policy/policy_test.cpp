#include "policy/policy.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace btfd::policy {
namespace {

constexpr gid_t kGroup = 4242;
/// Nobody whom the tests run as.
constexpr uid_t kStranger = 65533;

varlink::Peer peerOf(uid_t uid, gid_t gid = 65533, std::vector<gid_t> groups = {}) {
  return {.pid = 1, .uid = uid, .gid = gid, .groups = std::move(groups), .connection = 1};
}

TEST(Policy, RootAndTheDaemonsUserMayConnect) {
  EXPECT_TRUE(Policy(kGroup).mayConnect(peerOf(0)));
  EXPECT_TRUE(Policy(std::nullopt).mayConnect(peerOf(0)));
  EXPECT_TRUE(Policy(std::nullopt).mayConnect(peerOf(::geteuid())));
}

TEST(Policy, MembersOfTheGroupMayConnect) {
  EXPECT_TRUE(Policy(kGroup).mayConnect(peerOf(kStranger, kGroup)));
  EXPECT_TRUE(Policy(kGroup).mayConnect(peerOf(kStranger, 1, {5, kGroup})));
}

TEST(Policy, StrangersMayNotConnect) {
  EXPECT_FALSE(Policy(kGroup).mayConnect(peerOf(kStranger)));
  EXPECT_FALSE(Policy(kGroup).mayConnect(peerOf(kStranger, 1, {5, 6})));
}

TEST(Policy, WithoutAGroupNobodyElseMayConnect) {
  EXPECT_FALSE(Policy(std::nullopt).mayConnect(peerOf(kStranger, 0)));
  EXPECT_FALSE(Policy(std::nullopt).mayConnect(peerOf(kStranger, kGroup, {0})));
}

TEST(Policy, SaysWhoMayConnect) {
  const std::string who = Policy(kGroup, "btfd").whoMayConnect();
  EXPECT_TRUE(who.starts_with("only root")) << who;
  EXPECT_TRUE(who.contains("members of group 'btfd'")) << who;
  EXPECT_TRUE(Policy(kGroup).whoMayConnect().contains("members of group 4242"));
  EXPECT_FALSE(Policy(std::nullopt, "btfd").whoMayConnect().contains("group"));
}

TEST(Policy, OnlyTheOwnerAndRootMayChange) {
  const Policy policy(kGroup);
  EXPECT_TRUE(policy.mayChange(peerOf(1000), 1000));
  EXPECT_TRUE(policy.mayChange(peerOf(0), 1000));
  EXPECT_FALSE(policy.mayChange(peerOf(1001, kGroup), 1000));
  EXPECT_FALSE(policy.mayChange(peerOf(1001), 0));
}

TEST(FindGroup, KnowsTheSystemsGroups) {
  const auto root = findGroup("root");
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_EQ(*root, std::optional<gid_t>(0));
}

TEST(FindGroup, AGroupThatIsNotThereIsNoError) {
  const auto none = findGroup("no-such-group-as-this");
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_EQ(*none, std::nullopt);
}

} // namespace
} // namespace btfd::policy
