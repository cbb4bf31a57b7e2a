#include "service/descriptor_selection.h"
#include "test_support/files.h"

#include <gtest/gtest.h>

namespace btfd::service {
namespace {

/// An object with two programs, a map, and links with one descriptor and with two.
class DescriptorSelection : public testing::Test {
 protected:
  DescriptorSelection() {
    object_.id = 3;
    for (const char* name : {"on_exec", "on_exit"}) {
      registry::Program program;
      program.name = name;
      program.descriptor = test_support::memfdOf(name);
      object_.programs.push_back(std::move(program));
    }
    registry::Map map;
    map.name = "events";
    map.descriptor = test_support::memfdOf("events");
    object_.maps.push_back(std::move(map));
    for (const std::size_t descriptors : {1U, 2U}) {
      registry::Link link;
      link.id = 10 + descriptors;
      link.program = "on_exec";
      for (std::size_t i = 0; i < descriptors; ++i) {
        link.descriptors.push_back(test_support::memfdOf("link"));
      }
      object_.links.push_back(std::move(link));
    }
  }

  registry::Object object_;
};

TEST_F(DescriptorSelection, IsAllWhenNothingIsNamed) {
  const auto selected = selectDescriptors(object_, nlohmann::json::object());
  ASSERT_TRUE(selected);
  ASSERT_EQ(selected->entries.size(), 6U);
  ASSERT_EQ(selected->descriptors.all().size(), 6U);
  EXPECT_EQ(selected->entries[0], nlohmann::json({{"kind", "program"}, {"name", "on_exec"}, {"fileDescriptor", 0}}));
  EXPECT_EQ(selected->entries[2], nlohmann::json({{"kind", "map"}, {"name", "events"}, {"fileDescriptor", 2}}));
  EXPECT_EQ(selected->entries[5],
            nlohmann::json({{"kind", "link"}, {"name", "on_exec"}, {"linkId", 12}, {"fileDescriptor", 5}}));
  EXPECT_EQ(selected->descriptors.all()[2].get(), object_.maps[0].descriptor.get());
}

TEST_F(DescriptorSelection, IsWhatIsNamed) {
  const auto selected = selectDescriptors(object_, {{"programs", {"on_exit"}}, {"maps", {"events"}}});
  ASSERT_TRUE(selected);
  ASSERT_EQ(selected->entries.size(), 2U);
  EXPECT_EQ(selected->entries[0].at("name"), "on_exit");
  EXPECT_EQ(selected->descriptors.all()[0].get(), object_.programs[1].descriptor.get());
  EXPECT_EQ(selected->entries[1].at("name"), "events");
}

TEST_F(DescriptorSelection, ALinkMayHaveSeveralDescriptors) {
  const auto selected = selectDescriptors(object_, {{"links", {12}}});
  ASSERT_TRUE(selected);
  EXPECT_EQ(selected->entries.size(), 2U);
}

TEST_F(DescriptorSelection, NamesNothingWhenTheListsAreEmpty) {
  const auto selected = selectDescriptors(object_, {{"programs", nlohmann::json::array()}});
  ASSERT_TRUE(selected);
  EXPECT_TRUE(selected->entries.empty());
}

TEST_F(DescriptorSelection, ANameThatIsNotThereIsAnErrorWithTheNearest) {
  const auto selected = selectDescriptors(object_, {{"programs", {"on_exit", "on_exex"}}});
  ASSERT_FALSE(selected);
  EXPECT_EQ(selected.error().error, "io.btfd.NoSuchName");
  EXPECT_EQ(selected.error().parameters.at("kind"), "program");
  EXPECT_EQ(selected.error().parameters.at("nearMisses").at(0), "on_exec");
  EXPECT_EQ(selectDescriptors(object_, {{"maps", {"on_exec"}}}).error().parameters.at("kind"), "map");
}

TEST_F(DescriptorSelection, MoreThanFitAnAnswerAreAnErrorHoweverManyAreNamed) {
  const std::vector<std::string> most(253, "on_exec");
  EXPECT_TRUE(selectDescriptors(object_, {{"programs", most}}));
  for (const std::size_t count : {std::size_t{254}, std::size_t{60'000}}) {
    const auto selected = selectDescriptors(object_, {{"programs", std::vector<std::string>(count, "on_exec")}});
    ASSERT_FALSE(selected);
    EXPECT_EQ(selected.error().error, "io.btfd.LimitExceeded");
    EXPECT_EQ(selected.error().parameters.at("limit"), "descriptors");
    EXPECT_EQ(selected.error().parameters.at("maximum"), 253);
  }
  const std::vector<std::uint64_t> links(200, 12); // of two descriptors each
  EXPECT_FALSE(selectDescriptors(object_, {{"links", links}}));
}

TEST_F(DescriptorSelection, ALinkOfAnotherObjectIsAnError) {
  for (const nlohmann::json& id : {nlohmann::json(13), nlohmann::json(-1), nlohmann::json(INT64_MIN)}) {
    const auto selected = selectDescriptors(object_, {{"links", {id}}});
    ASSERT_FALSE(selected);
    EXPECT_EQ(selected.error().error, "io.btfd.NoSuchLink");
    EXPECT_EQ(selected.error().parameters.at("linkId"), id);
  }
}

} // namespace
} // namespace btfd::service
