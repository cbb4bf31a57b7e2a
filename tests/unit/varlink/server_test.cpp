#include "test_support.h"
#include "varlink/errors.h"
#include "varlink/limits.h"
#include "varlink/listen.h"

#include <algorithm>
#include <array>
#include <cerrno>

namespace btfd::varlink {
namespace {

using nlohmann::json;
using test::contentOf;
using test::fileWith;
using test::openDescriptors;
using test::sendRaw;
using test::TestServer;

constexpr const char* kEcho = "org.example.test.Echo";

std::string message(std::string_view text) {
  return std::string(text) + '\0';
}

TEST(Server, AnswersACall) {
  TestServer server;
  auto client = server.client();
  const auto reply = client.call(kEcho, json{{"text", "hé\"\n"}});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->error, "");
  EXPECT_EQ(reply->parameters, (json{{"text", "hé\"\n"}}));
  EXPECT_FALSE(reply->continues);
}

TEST(Server, DescribesItself) {
  TestServer server;
  auto client = server.client();
  const auto info = client.call("org.varlink.service.GetInfo", nullptr);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->parameters, json::parse(R"({"vendor":"Example","product":"test","version":"1.2",
    "url":"https://example.org","interfaces":["org.example.test","org.varlink.service"]})"));
  for (const std::string name : {"org.example.test", "org.varlink.service"}) {
    const auto description = client.call("org.varlink.service.GetInterfaceDescription", json{{"interface", name}});
    ASSERT_TRUE(description);
    const auto interface = parseInterface(description->parameters.at("description").get<std::string>());
    ASSERT_TRUE(interface);
    EXPECT_EQ(interface->name, name);
  }
  const auto unknown = client.call("org.varlink.service.GetInterfaceDescription", json{{"interface", "a.b"}});
  EXPECT_EQ(unknown->error, errors::kInterfaceNotFound);
  EXPECT_EQ(unknown->parameters, (json{{"interface", "a.b"}}));
}

TEST(Server, AnswersErrorsAndKeepsTheConnection) {
  struct Case {
    const char* method;
    json parameters;
    std::string_view error;
    json fields;
  };

  const std::array cases{
      Case{"nodots", nullptr, errors::kMethodNotFound, {{"method", "nodots"}}},
      Case{"a.b.C", nullptr, errors::kInterfaceNotFound, {{"interface", "a.b"}}},
      Case{"org.example.test.C", nullptr, errors::kMethodNotFound, {{"method", "org.example.test.C"}}},
      Case{"org.example.test.", nullptr, errors::kMethodNotFound, {{"method", "org.example.test."}}},
      Case{kEcho, nullptr, errors::kInvalidParameter, {{"parameter", "text"}, {"reason", "is missing"}}},
      Case{kEcho,
           {{"text", "x"}, {"y", 1}},
           errors::kInvalidParameter,
           {{"parameter", "y"}, {"reason", "is not a known field"}}},
      Case{"org.example.test.Count", {{"to", 3}}, errors::kExpectedMore, json::object()},
      Case{"org.example.test.Refuse", nullptr, "org.example.test.Refused", {{"why", "because"}}},
      Case{"org.example.test.Drop", nullptr, errors::kSystem, errors::systemFields(EIO)},
      Case{"org.example.test.Throw", nullptr, errors::kSystem, errors::systemFields(EIO)},
  };
  TestServer server;
  auto client = server.client();
  for (const auto& wrong : cases) {
    const auto reply = client.call(wrong.method, wrong.parameters);
    ASSERT_TRUE(reply) << wrong.method << reply.error().message;
    EXPECT_EQ(reply->error, wrong.error) << wrong.method;
    EXPECT_EQ(reply->parameters, wrong.fields) << wrong.method;
  }
  EXPECT_EQ(client.call(kEcho, json{{"text", "still"}})->parameters.at("text"), "still");
}

TEST(Server, BugsOfHandlersAreLogged) {
  TestServer server;
  auto client = server.client();
  ASSERT_TRUE(client.call("org.example.test.Drop", nullptr));
  ASSERT_TRUE(client.call("org.example.test.Throw", nullptr));
  const auto errors = server.errors();
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_TRUE(errors[0].contains("Drop did not answer"));
  EXPECT_TRUE(errors[2].contains("Throw threw"));
}

TEST(Server, UpgradeIsRefused) {
  TestServer server;
  Client client(server.connect());
  auto socket = server.connect();
  sendRaw(socket, message(R"({"method":"org.example.test.Echo","parameters":{"text":"x"},"upgrade":true})"));
  FrameReader reader;
  Frame frame;
  ASSERT_EQ(reader.read(socket, frame).value(), FrameReader::Outcome::message);
  EXPECT_TRUE(frame.text.contains(errors::kMethodNotImplemented));
}

TEST(Server, StreamsWhenMoreIsAsked) {
  TestServer server;
  auto client = server.client();
  std::vector<int> numbers;
  std::vector<bool> continues;
  const auto done = client.callMore("org.example.test.Count", json{{"to", 4}}, [&](Reply& reply) {
    numbers.push_back(reply.parameters.at("number").get<int>());
    continues.push_back(reply.continues);
    return true;
  });
  ASSERT_TRUE(done);
  EXPECT_EQ(numbers, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(continues, (std::vector<bool>{true, true, true, false}));
  EXPECT_TRUE(client.connected());
}

TEST(Server, MoreOnAPlainMethodGivesOneAnswer) {
  TestServer server;
  auto client = server.client();
  int answers = 0;
  ASSERT_TRUE(client.callMore(kEcho, json{{"text", "x"}}, [&](Reply& reply) {
    EXPECT_FALSE(reply.continues);
    return ++answers < 5;
  }));
  EXPECT_EQ(answers, 1);
}

TEST(Server, StreamsOfAMethodThatOnlySupportsThemAreOptional) {
  TestServer server;
  auto client = server.client();
  const auto reply = client.call("org.example.test.Flood", json{{"size", 10}});
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->parameters.at("sent"), 0);
}

TEST(Server, OnewayIsNeverAnsweredNotEvenWithAnError) {
  TestServer server;
  auto client = server.client();
  ASSERT_TRUE(client.callOneway("org.example.test.Record", json{{"text", "a"}}));
  ASSERT_TRUE(client.callOneway("org.example.test.Record", json{{"wrong", "b"}}));
  ASSERT_TRUE(client.callOneway("a.b.C", nullptr));
  ASSERT_TRUE(client.callOneway("org.example.test.Drop", nullptr));
  ASSERT_TRUE(client.callOneway("org.example.test.Count", json{{"to", 2}}));
  const auto reply = client.call("org.example.test.Recorded", nullptr);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->parameters, (json{{"texts", {"a"}}})) << "the first answer is that of the first call that wants one";
}

TEST(Server, WhatWasSentBeforeTheClientWentAwayIsDone) {
  TestServer server;
  {
    Client client(server.connect());
    for (int count = 0; count < 100; ++count) {
      ASSERT_TRUE(client.callOneway("org.example.test.Record", json{{"text", "x"}}));
    }
  }
  EXPECT_TRUE(server.eventually([&] { return server.closed_.size() == 1; }));
  EXPECT_EQ(server.inLoop([&] { return server.recorded_.size(); }), 100U);
}

TEST(Server, AnswersPipelinedCallsInOrder) {
  TestServer server;
  auto socket = server.connect();
  std::string calls = message(R"({"method":"org.example.test.Hold"})");
  for (int number = 0; number < 500; ++number) {
    calls += message(formatCall(kEcho, json{{"text", std::to_string(number)}}, nullptr));
  }
  std::thread sender([&] { sendRaw(socket, calls); });
  ASSERT_TRUE(server.eventually([&] { return server.held_.size() == 1; }));
  server.inLoop([&] {
    auto call = std::move(server.held_.front());
    server.held_.clear();
    call.reply();
  });
  FrameReader reader;
  Frame frame;
  ASSERT_EQ(reader.read(socket, frame).value(), FrameReader::Outcome::message);
  EXPECT_EQ(frame.text, R"({"parameters":{}})");
  for (int number = 0; number < 500; ++number) {
    ASSERT_EQ(reader.read(socket, frame).value(), FrameReader::Outcome::message);
    EXPECT_EQ(parseReply(frame.text)->parameters.at("text"), std::to_string(number));
  }
  sender.join();
}

TEST(Server, ACallUnderWayDoesNotHoldUpOtherConnections) {
  TestServer server;
  auto waiting = server.client();
  std::thread waiter([&] { EXPECT_TRUE(waiting.call("org.example.test.Hold", nullptr)); });
  ASSERT_TRUE(server.eventually([&] { return server.held_.size() == 1; }));
  auto client = server.client();
  EXPECT_TRUE(client.call(kEcho, json{{"text", "x"}}));
  server.inLoop([&] { server.held_.clear(); });
  waiter.join();
}

TEST(Server, PassesDescriptorsBothWays) {
  TestServer server;
  auto client = server.client();
  const auto file = fileWith("from client");
  const std::array<BorrowedFd, 1> descriptors{file};
  const auto read = client.call("org.example.test.ReadFile", json{{"fileDescriptor", 0}}, descriptors);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->parameters.at("text"), "from client");
  const auto made = client.call("org.example.test.MakeFile", json{{"text", "from server"}});
  ASSERT_TRUE(made);
  ASSERT_EQ(made->descriptors.size(), 1U);
  EXPECT_EQ(contentOf(made->descriptors[0]), "from server");
}

TEST(Server, ADescriptorThatDidNotComeIsTheHandlersError) {
  TestServer server;
  auto client = server.client();
  for (const int index : {0, -1, 1'000'000}) {
    const auto reply = client.call("org.example.test.ReadFile", json{{"fileDescriptor", index}});
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->error, errors::kInvalidParameter);
  }
}

TEST(Server, DescriptorsForAMethodThatTakesNoneAreClosedAndTheConnectionIsKept) {
  TestServer server;
  auto client = server.client();
  ASSERT_TRUE(client.call(kEcho, json{{"text", "x"}}));
  const auto file = fileWith("x");
  const std::vector<BorrowedFd> descriptors(100, BorrowedFd(file));
  const std::size_t before = openDescriptors();
  const auto reply = client.call(kEcho, json{{"text", "x"}}, descriptors);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->error, errors::kInvalidParameter);
  // The call is destroyed after its answer is on its way.
  EXPECT_TRUE(server.eventually([&] { return openDescriptors() == before; }));
  EXPECT_EQ(client.call(kEcho, json{{"text", "y"}})->parameters.at("text"), "y");
}

TEST(Server, DescriptorsNobodyTookAreClosed) {
  TestServer server;
  auto client = server.client();
  const auto file = fileWith("x");
  const std::vector<BorrowedFd> descriptors(100, BorrowedFd(file));
  const std::size_t before = openDescriptors();
  const auto reply = client.call("org.example.test.ReadFile", json{{"fileDescriptor", 99}}, descriptors);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->parameters.at("text"), "x");
  // The call is destroyed after its answer is on its way.
  EXPECT_TRUE(server.eventually([&] { return openDescriptors() == before; }));
}

TEST(Server, ClosesTheConnectionOnWhatIsNoCall) {
  TestServer server;
  for (const std::string_view text :
       {"x", "[]", "{}", "{\"method\":\"\xff\"}", R"({"method":"a.b","more":true,"oneway":true})"}) {
    auto socket = server.connect();
    sendRaw(socket, message(text));
    FrameReader reader;
    Frame frame;
    const auto outcome = reader.read(socket, frame);
    EXPECT_TRUE(!outcome || *outcome == FrameReader::Outcome::closed) << text;
  }
  EXPECT_EQ(server.messages().size(), 5U);
}

TEST(Server, KnowsWhoCalls) {
  TestServer server;
  auto client = server.client();
  const auto reply = client.call("org.example.test.WhoAmI", nullptr);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->parameters.at("pid"), ::getpid());
  EXPECT_EQ(reply->parameters.at("uid"), ::getuid());
  EXPECT_EQ(reply->parameters.at("gid"), ::getgid());
  EXPECT_GE(reply->parameters.at("connection").get<int>(), 1);
  auto second = server.client();
  EXPECT_NE(second.call("org.example.test.WhoAmI", nullptr)->parameters.at("connection"),
            reply->parameters.at("connection"));
}

TEST(Server, ACallUnderWayLearnsThatItsClientIsGone) {
  TestServer server;
  {
    auto socket = server.connect();
    sendRaw(socket, message(R"({"method":"org.example.test.Hold"})"));
    ASSERT_TRUE(server.eventually([&] { return server.held_.size() == 1; }));
    EXPECT_EQ(server.inLoop([&] { return server.disconnects_; }), 0U);
    // Pipelined calls must not hide the hang-up.
    sendRaw(socket, message(R"({"method":"org.example.test.Record","parameters":{"text":"later"}})"));
  }
  EXPECT_TRUE(server.eventually([&] { return server.closed_.size() == 1; }));
  EXPECT_EQ(server.inLoop([&] { return server.disconnects_; }), 1U);
  EXPECT_EQ(server.inLoop([&] { return server.recorded_; }), std::vector<std::string>{"later"});
  EXPECT_EQ(server.inLoop([&] { return server.server().connectionCount(); }), 0U);
}

TEST(Server, TheConnectionIsClosedOnlyWhenItsLastCallIsDone) {
  TestServer server;
  {
    auto socket = server.connect();
    sendRaw(socket, message(R"({"method":"org.example.test.Hold"})"));
    ASSERT_TRUE(server.eventually([&] { return server.held_.size() == 1; }));
    server.inLoop([&] { server.held_.front().onDisconnect([&] { ++server.disconnects_; }); });
  }
  ASSERT_TRUE(server.eventually([&] { return server.disconnects_ == 1; }));
  EXPECT_FALSE(server.inLoop([&] { return server.held_.front().connected(); }));
  EXPECT_TRUE(server.inLoop([&] { return server.closed_.empty(); }));
  server.inLoop([&] {
    server.held_.front().reply();
    server.held_.clear();
  });
  EXPECT_TRUE(server.eventually([&] { return server.closed_.size() == 1; }));
}

TEST(Server, ACallAnsweredAfterItsClientIsGoneLeavesNothing) {
  TestServer server;
  ASSERT_TRUE(server.client().call(kEcho, json{{"text", "x"}})); // Asio opens its own descriptors at the first use.
  ASSERT_TRUE(server.eventually([&] { return server.closed_.size() == 1; }));
  const std::size_t before = openDescriptors();
  for (int round = 0; round < 20; ++round) {
    auto socket = server.connect();
    sendRaw(socket, message(R"({"method":"org.example.test.MakeFile","parameters":{"text":"x"}})"));
  }
  EXPECT_TRUE(server.eventually([&] { return server.closed_.size() == 21; }));
  EXPECT_EQ(openDescriptors(), before);
}

TEST(Server, APeerThatOnlyStopsSendingStillGetsItsAnswer) {
  TestServer server;
  auto socket = server.connect();
  sendRaw(socket, message(R"({"method":"org.example.test.Hold"})"));
  ASSERT_EQ(::shutdown(socket.get(), SHUT_WR), 0);
  ASSERT_TRUE(server.eventually([&] { return server.held_.size() == 1; }));
  server.inLoop([&] {
    server.held_.front().reply();
    server.held_.clear();
  });
  FrameReader reader;
  Frame frame;
  ASSERT_EQ(reader.read(socket, frame).value(), FrameReader::Outcome::message);
  EXPECT_EQ(reader.read(socket, frame).value(), FrameReader::Outcome::closed);
  EXPECT_EQ(server.inLoop([&] { return server.disconnects_; }), 0U);
}

TEST(Server, WhoIsNotAuthorizedGetsOneErrorAndIsClosed) {
  ServerOptions options;
  int asked = 0;
  options.authorize = [&](const Peer&) { return ++asked > 1; };
  options.whoMayCall = "only root may";
  TestServer server(std::move(options));
  auto denied = server.client();
  const auto reply = denied.call(kEcho, json{{"text", "x"}});
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->error, errors::kPermissionDenied);
  EXPECT_EQ(reply->parameters, (json{{"message", "only root may"}}));
  EXPECT_FALSE(denied.call(kEcho, json{{"text", "x"}}));
  auto allowed = server.client();
  EXPECT_EQ(allowed.call(kEcho, json{{"text", "x"}})->error, "");
  EXPECT_EQ(allowed.call(kEcho, json{{"text", "x"}})->error, "");
  EXPECT_EQ(server.inLoop([&] { return asked; }), 2) << "asked once a connection";
}

TEST(Server, LargeAnswersAndCallsArrive) {
  TestServer server;
  auto client = server.client();
  const std::size_t size = 3'000'000;
  const auto large = client.call("org.example.test.Large", json{{"size", size}});
  ASSERT_TRUE(large) << large.error().message;
  EXPECT_EQ(large->parameters.at("text").get<std::string>().size(), size);
  const auto echo = client.call(kEcho, large->parameters);
  ASSERT_TRUE(echo);
  EXPECT_TRUE(echo->parameters == large->parameters);
}

TEST(Server, AnAnswerPastTheLimitBecomesAnError) {
  TestServer server;
  auto client = server.client();
  const auto reply = client.call("org.example.test.Large", json{{"size", kMessageLimit}});
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->error, errors::kSystem);
  EXPECT_EQ(reply->parameters.at("errnoName"), "EMSGSIZE");
}

TEST(Server, AnAnswerPastTheLimitIsKnownBeforeItIsSent) {
  TestServer server;
  auto client = server.client();
  const auto fits = client.call("org.example.test.Prepare", json{{"size", 1000}});
  ASSERT_TRUE(fits);
  EXPECT_EQ(fits->parameters.at("text"), std::string(1000, 'x'));
  const auto refused = client.call("org.example.test.Prepare", json{{"size", kMessageLimit}});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->error, "org.example.test.Refused");
}

TEST(Server, AnAnswerThatDoesNotFitTheIdlIsLogged) {
  TestServer server;
  server.inLoop(
      [&] { server.service().add("org.example.test", "Echo", [](Call call) { call.reply(json{{"text", 1}}); }); });
  auto client = server.client();
  ASSERT_TRUE(client.call(kEcho, json{{"text", "x"}}));
  ASSERT_EQ(server.errors().size(), 1U);
  EXPECT_TRUE(server.errors()[0].contains("\"text\" must be a string"));
}

TEST(Server, StopClosesEverything) {
  TestServer server;
  auto idle = server.client();
  auto holding = server.connect();
  sendRaw(holding, message(R"({"method":"org.example.test.Hold"})"));
  ASSERT_TRUE(server.eventually([&] { return server.held_.size() == 1; }));
  server.inLoop([&] { server.server().stop(); });
  EXPECT_TRUE(server.eventually([&] { return server.closed_.size() == 2; }));
  EXPECT_EQ(server.inLoop([&] { return server.disconnects_; }), 1U);
  EXPECT_FALSE(idle.call(kEcho, json{{"text", "x"}}));
}

TEST(Server, RefusesASocketThatDoesNotListen) {
  TestServer server;
  auto [one, other] = test::socketPair();
  EXPECT_FALSE(server.inLoop([&, &socket = one] { return server.server().listen(std::move(socket)).has_value(); }));
}

TEST(Service, VerifyFindsWhatDriftedApart) {
  const auto make = [](const char* interface, const char* method) {
    auto service = std::make_unique<Service>(ServiceInfo{});
    EXPECT_TRUE(service->addInterface("interface a.b\nmethod One() -> ()"));
    service->add(interface, method, [](Call) {});
    return service;
  };
  EXPECT_TRUE(make("a.b", "One")->verify());
  EXPECT_EQ(make("a.b", "Two")->verify().error().message, "method a.b.One has no handler");
  auto service = make("a.b", "One");
  service->add("a.b", "Two", [](Call) {});
  EXPECT_EQ(service->verify().error().message, "handler for a.b.Two, which no interface defines");
  EXPECT_FALSE(service->addInterface("interface a.b\nmethod One() -> ()")) << "added twice";
  EXPECT_FALSE(service->addInterface("interface"));
}

} // namespace
} // namespace btfd::varlink
