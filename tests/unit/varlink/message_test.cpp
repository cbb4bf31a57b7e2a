#include "varlink/limits.h"
#include "varlink/message.h"

#include <gtest/gtest.h>

#include <string>

namespace btfd::varlink {
namespace {

using nlohmann::json;

std::string nested(std::size_t levels) {
  return R"({"method":"a.B","parameters":{"x":)" + std::string(levels, '[') + std::string(levels, ']') + "}}";
}

TEST(Message, ReadsCalls) {
  const auto call = parseCall(R"({"method":"a.B","parameters":{"x":1},"more":true,"oneway":false})");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->method, "a.B");
  EXPECT_EQ(call->parameters, json::parse(R"({"x":1})"));
  EXPECT_TRUE(call->more);
  EXPECT_FALSE(call->oneway);
  EXPECT_EQ(parseCall(R"({"method":"a.B"})")->parameters, json::object());
  EXPECT_EQ(parseCall(R"({"method":"a.B","parameters":null})")->parameters, json::object());
  EXPECT_TRUE(parseCall(R"( {"method":"a.B","method":"a.C"} )")) << "duplicates are tolerated";
}

TEST(Message, RefusesWhatIsNoCall) {
  for (const std::string_view text :
       {"", "x", "{", "[]", "null", "{}", R"({"method":1})", R"({"method":""})", R"({"method":"a.B","parameters":[]})",
        R"({"method":"a.B","more":1})", R"({"method":"a.B","other":1})", R"({"method":"a.B"}{})",
        R"({"method":"a.B","more":true,"oneway":true})", "{\"method\":\"a.\xff\"}", "{\"method\":\"a.\xc0\xaf\"}",
        R"({"method":"a.\ud800"})", R"({"method":"a.B","parameters":{"x":1e999}})", R"({"method":"a.B" /* */})"}) {
    EXPECT_FALSE(parseCall(text)) << text;
  }
}

TEST(Message, NestingIsBounded) {
  EXPECT_TRUE(parseCall(nested(kNestingLimit - 2)));
  EXPECT_FALSE(parseCall(nested(kNestingLimit - 1)));
  EXPECT_FALSE(parseCall(nested(1'000'000)));
}

TEST(Message, BracketsInStringsAreNoNesting) {
  const std::string brackets(1000, '[');
  EXPECT_TRUE(parseCall(R"({"method":"a.B","parameters":{"x":")" + brackets + R"(\\","y":"\")" + brackets + "\"}}"));
}

TEST(Message, TheNumberOfValuesIsBounded) {
  const auto call = [](std::size_t values) {
    std::string list;
    for (std::size_t value = 0; value < values; ++value) {
      list += "0,";
    }
    return R"({"method":"a.B","parameters":{"x":[)" + list + "0]}}";
  };
  EXPECT_TRUE(parseCall(call(kValueLimit - 10)));
  EXPECT_FALSE(parseCall(call(kValueLimit)));
}

TEST(Message, ReadsReplies) {
  const auto reply = parseReply(R"({"parameters":{"a":1},"continues":true,"new":{}})");
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->continues);
  EXPECT_EQ(reply->parameters, json::parse(R"({"a":1})"));
  const auto error = parseReply(R"({"error":"a.E"})");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->error, "a.E");
  EXPECT_EQ(error->parameters, json::object());
  EXPECT_FALSE(parseReply(R"({"error":1})"));
  EXPECT_FALSE(parseReply("[]"));
}

TEST(Message, WhatIsWrittenCanBeRead) {
  const json parameters = json::parse(R"({"text":"\"\\\u0000\u00e9"})");
  const auto call = parseCall(formatCall("a.B", parameters, "oneway"));
  ASSERT_TRUE(call);
  EXPECT_TRUE(call->oneway);
  EXPECT_EQ(call->parameters, parameters);
  EXPECT_EQ(formatCall("a.B", nullptr, nullptr), R"({"method":"a.B"})");
  const auto reply = parseReply(formatReply(parameters, true));
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->continues);
  EXPECT_EQ(reply->parameters, parameters);
  EXPECT_EQ(formatReply(nullptr, false), R"({"parameters":{}})");
  EXPECT_EQ(parseReply(formatError("a.E", parameters))->error, "a.E");
  EXPECT_FALSE(formatReply(parameters, false).contains('\0')) << "a NUL would end the message";
}

TEST(Message, TextThatIsNotUtf8IsRepairedOnTheWayOut) {
  const auto reply = parseReply(formatReply(json{{"log", "a\xff"}}, false));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->parameters.at("log"), "a\xef\xbf\xbd");
}

} // namespace
} // namespace btfd::varlink
