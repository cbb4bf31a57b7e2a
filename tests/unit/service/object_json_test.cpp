#include "base/closer.h"
#include "loader/tc_filter.h"
#include "service/object_json.h"
#include "test_support/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace btfd::service {
namespace {

using testing::HasSubstr;

/// A load job's answer with a program, a map, a link of two descriptors, and the image.
nlohmann::json goodBody() {
  return nlohmann::json::parse(R"({
    "object": {
      "name": "probe", "digest": "abcd",
      "programs": [{"name": "on_exec", "section": "tp_btf/x", "type": "tracing", "attachType": "trace_raw_tp", "kernelId": 7, "tag": "00ff", "descriptor": 0}],
      "maps": [{"name": "events", "type": "ringbuf", "kernelId": 8, "keySize": 0, "valueSize": 0, "maxEntries": 4096, "descriptor": 1}],
      "links": [{"program": "on_exec", "kind": "tp_btf", "target": "x", "kernelId": 9, "detachBySocketOption": false, "descriptors": [2, 3]}]
    },
    "image": 4, "relocated": true, "pinned": ["/sys/fs/bpf/x"]
  })");
}

loader::ChannelMessage answerOf(nlohmann::json body) {
  loader::ChannelMessage answer{.body = std::move(body), .descriptors = {}};
  for (int i = 0; i < 5; ++i) {
    answer.descriptors.push_back(test_support::memfdOf("x"));
  }
  return answer;
}

TEST(TakeObject, TakesAllApart) {
  auto answer = answerOf(goodBody());
  std::vector<int> numbers;
  for (const UniqueFd& descriptor : answer.descriptors) {
    numbers.push_back(descriptor.get());
  }
  const auto object = takeObject(answer);
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ(object->name, "probe");
  EXPECT_EQ(object->digest, "abcd");
  ASSERT_EQ(object->programs.size(), 1U);
  EXPECT_EQ(object->programs[0].kernelId, 7U);
  EXPECT_EQ(object->programs[0].descriptor.get(), numbers[0]);
  ASSERT_EQ(object->maps.size(), 1U);
  EXPECT_EQ(object->maps[0].maxEntries, 4096U);
  EXPECT_EQ(object->maps[0].descriptor.get(), numbers[1]);
  ASSERT_EQ(object->links.size(), 1U);
  EXPECT_EQ(object->links[0].kernelId, 9U);
  EXPECT_EQ(object->links[0].descriptors.size(), 2U);
  ASSERT_TRUE(object->image);
  EXPECT_EQ(object->image->get(), numbers[4]);
  EXPECT_EQ(object->pinned, std::vector<std::string>{"/sys/fs/bpf/x"});
}

TEST(TakeObject, AFilterHasItsPlaceAndItsNamespace) {
  auto body = goodBody();
  auto& link = body["object"]["links"][0];
  link["kind"] = "tc";
  link["descriptors"] = nlohmann::json::array();
  link["filter"] =
      loader::toJson({.networkNamespace = 1, .interface = 2, .priority = 50, .handle = 7, .programs = {3}});
  link["filter"]["namespaceDescriptor"] = 2U;
  auto answer = answerOf(body);
  const auto object = takeObject(answer);
  ASSERT_TRUE(object) << object.error().message;
  ASSERT_TRUE(object->links[0].filter);
  EXPECT_EQ(object->links[0].filter->interface, 2);
  EXPECT_TRUE(object->links[0].networkNamespace);
  AnswerDescriptors wanted(true);
  const auto described = toJson(object->links[0], wanted);
  EXPECT_EQ(described["priority"], 50);
  EXPECT_EQ(described["handle"], 7);
  EXPECT_FALSE(described.contains("fileDescriptor")) << "the namespace is none of the client's";

  link["filter"]["interface"] = -1;
  auto other = answerOf(body);
  EXPECT_FALSE(takeObject(other));
}

TEST(TakeObject, ThereMayBeNoImage) {
  auto body = goodBody();
  body.erase("image");
  auto answer = answerOf(body);
  const auto object = takeObject(answer);
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_FALSE(object->image);
}

TEST(TakeObject, OnlyAClientsSocketIsLeftToTheCloser) {
  auto body = goodBody();
  auto socket = body["object"]["links"][0];
  socket["detachBySocketOption"] = true;
  socket["descriptors"] = nlohmann::json::array({5U});
  body["object"]["links"].push_back(socket);
  auto answer = answerOf(body);
  answer.descriptors.push_back(test_support::memfdOf("a socket"));
  Closer closer;
  for (UniqueFd& descriptor : answer.descriptors) {
    descriptor = UniqueFd(descriptor.release(), &closer);
  }
  const auto object = takeObject(answer);
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ(object->programs.at(0).descriptor.closer(), nullptr);
  EXPECT_EQ(object->maps.at(0).descriptor.closer(), nullptr);
  EXPECT_EQ(object->links.at(0).descriptors.at(0).closer(), nullptr);
  EXPECT_EQ(object->links.at(1).descriptors.at(0).closer(), &closer);
}

TEST(TakeObject, ALinkMayHaveNoKernelId) {
  auto body = goodBody();
  body["object"]["links"][0].erase("kernelId");
  auto answer = answerOf(std::move(body));
  const auto object = takeObject(answer);
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ(object->links[0].kernelId, std::nullopt);
}

/// Replaces each value of the answer, wherever it is, by each of these.
TEST(TakeObject, NonsenseAnywhereIsAnErrorAndNoCrash) {
  const nlohmann::json good = goodBody();
  const std::vector<nlohmann::json> nonsense{nullptr,
                                             -1,
                                             5,
                                             UINT64_MAX,
                                             1e300,
                                             "text",
                                             nlohmann::json::array({1}),
                                             nlohmann::json::object({{"a", 1}}),
                                             nlohmann::json::binary({1, 2})};
  const nlohmann::json flat = good.flatten();
  for (const auto& [place, value] : flat.items()) {
    for (const auto& bad : nonsense) {
      nlohmann::json body = good;
      body[nlohmann::json::json_pointer(place)] = bad;
      auto answer = answerOf(body);
      const auto object = takeObject(answer);
      if (!object) {
        EXPECT_THAT(object.error().message, HasSubstr("makes no sense"));
      }
      // A text for a text and a number for a number may make sense; of another type it does not.
      const bool sameType = value.type() == bad.type() || (value.is_number_integer() && bad.is_number_integer());
      EXPECT_TRUE(!object || sameType) << place << " = " << bad;
    }
  }
}

TEST(TakeObject, WhatIsMissingIsAnError) {
  const nlohmann::json good = goodBody();
  const nlohmann::json flat = good.flatten();
  for (const auto& [place, value] : flat.items()) {
    const nlohmann::json::json_pointer pointer(place);
    nlohmann::json body = good;
    auto& parent = body[pointer.parent_pointer()];
    if (!parent.is_object() || pointer.back() == "kernelId" || place == "/image") {
      continue;
    }
    parent.erase(pointer.back());
    auto answer = answerOf(body);
    EXPECT_FALSE(takeObject(answer)) << place;
  }
}

TEST(TakeObject, AnAnswerThatIsNoObjectIsAnError) {
  for (const nlohmann::json& body :
       {nlohmann::json(), nlohmann::json(1), nlohmann::json::array(), nlohmann::json("x"), nlohmann::json::object()}) {
    auto answer = answerOf(body);
    EXPECT_FALSE(takeObject(answer)) << body;
    EXPECT_FALSE(takeLink(answer)) << body;
  }
}

TEST(TakeObject, ADescriptorNamedTwiceIsAnError) {
  auto body = goodBody();
  body["object"]["maps"][0]["descriptor"] = 0;
  auto answer = answerOf(std::move(body));
  EXPECT_FALSE(takeObject(answer));
}

TEST(TakeObject, NumbersThatDoNotFitAreAnError) {
  for (const char* place : {"/object/programs/0/kernelId", "/object/maps/0/keySize", "/object/links/0/kernelId"}) {
    for (const nlohmann::json& number : {nlohmann::json(-1), nlohmann::json(std::uint64_t{1} << 32U)}) {
      auto body = goodBody();
      body[nlohmann::json::json_pointer(place)] = number;
      auto answer = answerOf(std::move(body));
      EXPECT_FALSE(takeObject(answer)) << place << " = " << number;
    }
  }
}

TEST(TakeLink, TakesAnAttachJobsAnswer) {
  auto answer = answerOf({{"link", goodBody()["object"]["links"][0]}});
  const auto link = takeLink(answer);
  ASSERT_TRUE(link) << link.error().message;
  EXPECT_EQ(link->kind, "tp_btf");
  EXPECT_EQ(link->descriptors.size(), 2U);
}

TEST(ObjectJson, SaysAllOfAnObject) {
  auto answer = answerOf(goodBody());
  auto object = takeObject(answer);
  ASSERT_TRUE(object);
  object->id = 5;
  object->owner = 1000;
  object->labels = {{"team", "net"}};
  object->loadedAt = std::chrono::system_clock::time_point(std::chrono::seconds(2));
  object->loadDuration = std::chrono::microseconds(345);
  AnswerDescriptors descriptors(true);
  const auto json = toJson(*object, descriptors);
  EXPECT_EQ(json.at("id"), 5);
  EXPECT_EQ(json.at("ownerUid"), 1000);
  EXPECT_EQ(json.at("labels"), nlohmann::json({{"team", "net"}}));
  EXPECT_EQ(json.at("loadedAtUSec"), 2'000'000);
  EXPECT_EQ(json.at("loadDurationUSec"), 345);
  EXPECT_EQ(json.at("programs").at(0).at("fileDescriptor"), 0);
  EXPECT_EQ(json.at("maps").at(0).at("fileDescriptor"), 1);
  // A link of several descriptors is got with GetDescriptors only.
  EXPECT_FALSE(json.at("links").at(0).contains("fileDescriptor"));
  EXPECT_EQ(descriptors.all().size(), 2U);
}

TEST(ObjectJson, ADescriptionIsAsLongAsItIsSaidToBe) {
  auto answer = answerOf(goodBody());
  auto object = takeObject(answer);
  ASSERT_TRUE(object);
  AnswerDescriptors none(false);
  const std::size_t before = describedBytes(*object);
  EXPECT_EQ(before, toJson(*object, none).dump().size() + 1);
  registry::Link link;
  link.program = "on_exec";
  link.target = "a \"target\" that is no UTF-8: \xff";
  const std::size_t more = describedBytes(link);
  object->links.push_back(std::move(link));
  EXPECT_EQ(describedBytes(*object), before + more);
}

TEST(ObjectJson, HasNoDescriptorsWhereNoneAreWanted) {
  auto answer = answerOf(goodBody());
  const auto object = takeObject(answer);
  ASSERT_TRUE(object);
  AnswerDescriptors descriptors(false);
  const auto json = toJson(*object, descriptors);
  EXPECT_FALSE(json.at("programs").at(0).contains("fileDescriptor"));
  EXPECT_TRUE(descriptors.all().empty());
  EXPECT_EQ(json.at("labels"), nlohmann::json::object());
}

} // namespace
} // namespace btfd::service
