#include "test_support.h"

#include <array>
#include <cerrno>
#include <chrono>

namespace btfd::varlink {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using test::sendRaw;
using test::socketPair;

/// A client whose service answers with `text`, whatever it is asked.
Result<Reply> answered(std::string_view text) {
  auto [here, there] = socketPair();
  sendRaw(there, text);
  there.reset(::dup(there.get()));
  Client client(std::move(here));
  return client.call("a.b.C", nullptr);
}

TEST(Client, NobodyListeningIsAnErrorThatNamesThePath) {
  const auto client = Client::connect("/nonexistent/socket");
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, ENOENT);
  EXPECT_TRUE(client.error().message.contains("/nonexistent/socket"));
}

TEST(Client, WritesTheCallAsTheWireWantsIt) {
  auto [here, there] = socketPair();
  Client client(std::move(here));
  ASSERT_TRUE(client.callOneway("a.b.C", json{{"x", 1}}));
  FrameReader reader;
  Frame frame;
  ASSERT_EQ(reader.read(there, frame).value(), FrameReader::Outcome::message);
  EXPECT_EQ(json::parse(frame.text), json::parse(R"({"method":"a.b.C","oneway":true,"parameters":{"x":1}})"));
}

TEST(Client, AnErrorReplyIsAReply) {
  const auto reply = answered(std::string_view("{\"error\":\"a.b.E\",\"parameters\":{\"why\":1}}\0", 41));
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->error, "a.b.E");
  EXPECT_EQ(reply->parameters, (json{{"why", 1}}));
}

TEST(Client, WhatIsNoReplyIsAnError) {
  EXPECT_FALSE(answered(std::string_view("x\0", 2)));
  EXPECT_FALSE(answered(std::string_view("[]\0", 3)));
  EXPECT_FALSE(answered(std::string_view("{\"continues\":true}\0", 19)));
}

TEST(Client, GivesUpAfterItsTimeout) {
  auto [here, there] = socketPair();
  Client client(std::move(here));
  ASSERT_TRUE(client.setTimeout(20ms));
  const auto reply = client.call("a.b.C", nullptr);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ETIMEDOUT);
  EXPECT_FALSE(client.connected()) << "the answer may still come, and must not be taken for that of another call";
  EXPECT_EQ(client.call("a.b.C", nullptr).error().code, ENOTCONN);
}

TEST(Client, AServiceThatClosesIsAnError) {
  auto [here, there] = socketPair();
  there.reset();
  Client client(std::move(here));
  EXPECT_FALSE(client.call("a.b.C", nullptr));
}

TEST(Client, EndingAStreamClosesTheConnection) {
  test::TestServer server;
  auto client = server.client();
  int answers = 0;
  ASSERT_TRUE(client.callMore("org.example.test.Count", json{{"to", 100}}, [&](Reply&) { return ++answers < 3; }));
  EXPECT_EQ(answers, 3);
  EXPECT_FALSE(client.connected());
}

TEST(Client, TooManyDescriptorsAreRefusedBeforeAnythingIsSent) {
  auto [here, there] = socketPair();
  const std::vector<BorrowedFd> descriptors(kDescriptorLimit + 1, BorrowedFd(there));
  Client client(std::move(here));
  const auto reply = client.call("a.b.C", nullptr, descriptors);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, E2BIG);
}

TEST(Client, AsManyDescriptorsAsTheLimitArrive) {
  test::TestServer server;
  auto client = server.client();
  const auto file = test::fileWith("last");
  const std::vector<BorrowedFd> descriptors(kDescriptorLimit, BorrowedFd(file));
  const auto reply =
      client.call("org.example.test.ReadFile", json{{"fileDescriptor", kDescriptorLimit - 1}}, descriptors);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->parameters.at("text"), "last");
}

} // namespace
} // namespace btfd::varlink
