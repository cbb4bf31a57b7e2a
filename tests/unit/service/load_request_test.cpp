#include "service/load_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>

namespace btfd::service {
namespace {

using testing::HasSubstr;

nlohmann::json request() {
  return {{"objectFileDescriptor", 0}};
}

std::string invalidFieldOf(const nlohmann::json& parameters) {
  const auto invalid = checkLoad(parameters);
  return invalid ? invalid->field : "";
}

TEST(LoadRequest, NeedsExactlyOneObject) {
  EXPECT_EQ(invalidFieldOf(request()), "");
  EXPECT_EQ(invalidFieldOf({{"object", "Zm9v"}}), "");
  EXPECT_EQ(invalidFieldOf(nlohmann::json::object()), "objectFileDescriptor");
  EXPECT_EQ(invalidFieldOf({{"object", "Zm9v"}, {"objectFileDescriptor", 0}}), "object");
}

TEST(LoadRequest, ANameHas1To64BytesWithoutControlCharacters) {
  auto parameters = request();
  for (const std::string& name : {std::string("probe"), std::string(64, 'x'), std::string("prüfung eins")}) {
    parameters["name"] = name;
    EXPECT_EQ(invalidFieldOf(parameters), "") << name;
  }
  for (const std::string& name :
       {std::string(), std::string(65, 'x'), std::string("a\nb"), std::string("\x1b[2J"), std::string("\x7f"),
        std::string("a\0b", 3), std::string("a\u202eb"), std::string("a\u200bb")}) {
    parameters["name"] = name;
    EXPECT_EQ(invalidFieldOf(parameters), "name") << name;
  }
}

TEST(LoadRequest, LabelsAreBounded) {
  auto parameters = request();
  for (int i = 0; i < 64; ++i) {
    parameters["labels"]["key" + std::to_string(i)] = "value";
  }
  EXPECT_EQ(invalidFieldOf(parameters), "");
  parameters["labels"]["one more"] = "value";
  EXPECT_EQ(invalidFieldOf(parameters), "labels");
}

TEST(LoadRequest, LabelsCanBeShown) {
  const auto withLabel = [](const std::string& key, const std::string& value) {
    auto parameters = request();
    parameters["labels"][key] = value;
    return invalidFieldOf(parameters);
  };
  EXPECT_EQ(withLabel("team", ""), "");
  EXPECT_EQ(withLabel(std::string(64, 'k'), std::string(256, 'v')), "");
  EXPECT_EQ(withLabel("", "x"), "labels");
  EXPECT_EQ(withLabel(std::string(65, 'k'), "x"), "labels");
  EXPECT_EQ(withLabel("a\tb", "x"), "labels");
  EXPECT_EQ(withLabel("team", std::string(257, 'v')), "labels.team");
  EXPECT_EQ(withLabel("team", "a\rb"), "labels.team");
  EXPECT_EQ(withLabel("te\u2066am", "x"), "labels");
  EXPECT_EQ(withLabel("team", "\u202eten"), "labels.team");
}

TEST(LoadRequest, TheLogLevelIsThatOfBpf) {
  auto parameters = request();
  for (const int level : {0, 1, 7}) {
    parameters["verifierLogLevel"] = level;
    EXPECT_EQ(invalidFieldOf(parameters), "") << level;
  }
  for (const std::int64_t level : {std::int64_t{-1}, std::int64_t{8}, INT64_MAX}) {
    parameters["verifierLogLevel"] = level;
    EXPECT_EQ(invalidFieldOf(parameters), "verifierLogLevel") << level;
  }
}

TEST(ObjectName, IsTheOneGivenOrElseTheFiles) {
  std::vector<UniqueFd> descriptors;
  descriptors.emplace_back(::memfd_create("exec.bpf.o", MFD_CLOEXEC));
  EXPECT_EQ(objectNameOf({{"name", "given"}, {"objectFileDescriptor", 0}}, descriptors), "given");
  EXPECT_EQ(objectNameOf(request(), descriptors), "exec");
  EXPECT_EQ(objectNameOf(request(), {}), "");
  EXPECT_EQ(objectNameOf({{"objectFileDescriptor", -1}}, descriptors), "");
}

TEST(LabelsOf, GivesAllAndNoneWhereThereAreNone) {
  EXPECT_TRUE(labelsOf(request()).empty());
  const auto labels = labelsOf({{"labels", {{"team", "net"}, {"tier", "1"}}}});
  EXPECT_EQ(labels, (registry::Labels{{"team", "net"}, {"tier", "1"}}));
}

} // namespace
} // namespace btfd::service
