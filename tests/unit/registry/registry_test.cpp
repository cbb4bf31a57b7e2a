#include "registry/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace btfd::registry {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Object objectOf(std::uint64_t connection, std::size_t links = 0) {
  Object object;
  object.name = "probe";
  object.connection = connection;
  object.links.resize(links);
  return object;
}

TEST(Registry, IdsCountUpAndAreNotUsedAgain) {
  Registry registry;
  EXPECT_EQ(registry.add(objectOf(1)).id, 1U);
  EXPECT_EQ(registry.add(objectOf(1)).id, 2U);
  ASSERT_TRUE(registry.take(2));
  EXPECT_EQ(registry.add(objectOf(1)).id, 3U);
}

TEST(Registry, LinksHaveIdsOfTheirOwn) {
  Registry registry;
  Object& first = registry.add(objectOf(1, 2));
  const Object& second = registry.add(objectOf(1, 1));
  EXPECT_EQ(first.links[0].id, 1U);
  EXPECT_EQ(first.links[1].id, 2U);
  EXPECT_EQ(second.links[0].id, 3U);
  EXPECT_EQ(registry.addLink(first, Link{}).id, 4U);
  EXPECT_EQ(registry.findByLink(4), &first);
  EXPECT_EQ(registry.findByLink(3), &second);
  EXPECT_EQ(registry.findByLink(5), nullptr);
}

TEST(Registry, FindsWhatWasAddedOnly) {
  Registry registry;
  EXPECT_EQ(registry.find(1), nullptr);
  const Object& added = registry.add(objectOf(1));
  EXPECT_EQ(registry.find(added.id), &added);
  EXPECT_EQ(registry.find(0), nullptr);
}

TEST(Registry, TakingAnObjectTakesItsLinks) {
  Registry registry;
  const std::uint64_t id = registry.add(objectOf(1, 1)).id;
  const auto taken = registry.take(id);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->id, id);
  EXPECT_EQ(taken->links.size(), 1U);
  EXPECT_EQ(registry.find(id), nullptr);
  EXPECT_EQ(registry.findByLink(1), nullptr);
  EXPECT_FALSE(registry.takeLink(1));
  EXPECT_FALSE(registry.take(id));
}

TEST(Registry, TakingALinkLeavesTheOthers) {
  Registry registry;
  Object& object = registry.add(objectOf(1, 3));
  object.links[1].target = "the middle one";
  const auto taken = registry.takeLink(2);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->target, "the middle one");
  EXPECT_EQ(object.links.size(), 2U);
  EXPECT_EQ(registry.findByLink(1), &object);
  EXPECT_EQ(registry.findByLink(2), nullptr);
  EXPECT_FALSE(registry.takeLink(2));
  EXPECT_EQ(registry.addLink(object, Link{}).id, 4U);
}

TEST(Registry, KnowsWhatEndsWithAConnection) {
  Registry registry;
  registry.add(objectOf(7));
  registry.add(objectOf(8));
  registry.add(objectOf(7));
  EXPECT_THAT(registry.idsOfConnection(7), ElementsAre(1, 3));
  EXPECT_THAT(registry.idsOfConnection(9), IsEmpty());
}

TEST(Registry, KnowsWhichPinsAreInUse) {
  Registry registry;
  Object object = objectOf(1);
  object.pinned = {"/sys/fs/bpf/btfd/owners/0/shared"};
  const std::uint64_t id = registry.add(std::move(object)).id;
  EXPECT_TRUE(registry.isPinnedByAny("/sys/fs/bpf/btfd/owners/0/shared"));
  EXPECT_FALSE(registry.isPinnedByAny("/sys/fs/bpf/btfd/owners/0/other"));
  registry.take(id);
  EXPECT_FALSE(registry.isPinnedByAny("/sys/fs/bpf/btfd/owners/0/shared"));
}

TEST(Object, FindsProgramsAndMapsByName) {
  Object object;
  object.programs.emplace_back().name = "on_exec";
  object.maps.emplace_back().name = "events";
  EXPECT_EQ(object.findProgram("on_exec"), &object.programs[0]);
  EXPECT_EQ(object.findProgram("events"), nullptr);
  EXPECT_EQ(object.findMap("events"), &object.maps[0]);
  EXPECT_EQ(object.findMap("on_exec"), nullptr);
}

TEST(Registry, IdsCanBeGivenBefore) {
  Registry registry;
  Object object = objectOf(1, 2);
  registry.giveIds(object);
  EXPECT_EQ(object.id, 1U);
  EXPECT_EQ(registry.find(1), nullptr) << "it is not recorded yet";
  Object dropped = objectOf(1);
  registry.giveIds(dropped);
  Object& recorded = registry.add(std::move(object));
  EXPECT_EQ(recorded.id, 1U);
  EXPECT_EQ(recorded.links[1].id, 2U);
  EXPECT_EQ(registry.findByLink(2), &recorded);
  EXPECT_EQ(registry.add(objectOf(1)).id, 3U) << "ids are not used again";
  Link link;
  registry.giveId(link);
  EXPECT_EQ(registry.addLink(recorded, std::move(link)).id, 3U);
}

} // namespace
} // namespace btfd::registry
