#include "test_support.h"
#include "varlink/errors.h"
#include "varlink/listen.h"
#include "varlink/socket_address.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include <sys/resource.h>

namespace btfd::varlink {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using test::sendRaw;
using test::TestServer;

constexpr const char* kEcho = "org.example.test.Echo";

/// Whether the server closes `socket` within some seconds.
bool isClosed(BorrowedFd socket) {
  timeval timeout{5, 0};
  EXPECT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout), 0);
  for (;;) {
    char buffer[4096];
    const ssize_t count = ::recv(socket.get(), buffer, sizeof buffer, 0);
    if (count <= 0) {
      return count == 0 || errno == ECONNRESET;
    }
  }
}

TEST(ServerLimits, AHalfMessageIsGivenUp) {
  ServerOptions options;
  options.limits.receive = 50ms;
  TestServer server(std::move(options));
  auto idle = server.client();
  auto socket = server.connect();
  sendRaw(socket, R"({"method":"org.exa)");
  EXPECT_TRUE(isClosed(socket));
  EXPECT_TRUE(server.messages().back().contains("not complete in time"));
  EXPECT_TRUE(idle.call(kEcho, json{{"text", "x"}})) << "a connection may be idle for as long as it likes";
}

TEST(ServerLimits, DrippingBytesDoNotExtendTheDeadline) {
  ServerOptions options;
  options.limits.receive = 100ms;
  TestServer server(std::move(options));
  auto socket = server.connect();
  const auto start = std::chrono::steady_clock::now();
  while (::send(socket.get(), " ", 1, MSG_NOSIGNAL) == 1 && std::chrono::steady_clock::now() - start < 5s) {
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(ServerLimits, AMessageThatCompletesInTimeStopsTheClock) {
  ServerOptions options;
  options.limits.receive = 100ms;
  TestServer server(std::move(options));
  auto socket = server.connect();
  const std::string call = formatCall(kEcho, json{{"text", "x"}}, nullptr) + '\0';
  sendRaw(socket, std::string_view(call).substr(0, 10));
  std::this_thread::sleep_for(20ms);
  sendRaw(socket, std::string_view(call).substr(10));
  std::this_thread::sleep_for(200ms);
  FrameReader reader;
  Frame frame;
  ASSERT_EQ(reader.read(socket, frame).value(), FrameReader::Outcome::message);
  sendRaw(socket, call);
  ASSERT_EQ(reader.read(socket, frame).value(), FrameReader::Outcome::message);
}

TEST(ServerLimits, AClientThatNeverReadsIsClosedAndOthersAreServed) {
  ServerOptions options;
  options.limits.send = 100ms;
  TestServer server(std::move(options));
  auto socket = server.connect();
  const std::string call = formatCall("org.example.test.Large", json{{"size", 1'000'000}}, nullptr) + '\0';
  for (int count = 0; count < 10; ++count) {
    sendRaw(socket, call);
  }
  auto client = server.client();
  EXPECT_TRUE(client.call(kEcho, json{{"text", "x"}}));
  EXPECT_TRUE(server.eventually([&] { return server.closed_.size() == 1; }));
  EXPECT_TRUE(server.messages().back().contains("not read in time"));
}

TEST(ServerLimits, ASlowReaderGetsAllAsLongAsItMakesProgress) {
  ServerOptions options;
  options.limits.send = 300ms;
  TestServer server(std::move(options));
  auto socket = server.connect();
  const std::string call = formatCall("org.example.test.Large", json{{"size", 300'000}}, nullptr) + '\0';
  for (int count = 0; count < 5; ++count) {
    sendRaw(socket, call);
  }
  FrameReader reader;
  Frame frame;
  for (int count = 0; count < 5; ++count) {
    std::this_thread::sleep_for(100ms);
    ASSERT_EQ(reader.read(socket, frame).value(), FrameReader::Outcome::message);
    EXPECT_GT(frame.text.size(), 300'000U);
  }
}

TEST(ServerLimits, NotificationsPastTheBoundAreRefusedNotQueued) {
  for (const std::size_t size : {std::size_t{10}, std::size_t{100'000}}) {
    ServerOptions options;
    TestServer server(std::move(options));
    auto client = server.client();
    std::int64_t received = -1; // The last answer is not among those counted.
    std::int64_t sent = -1;
    ASSERT_TRUE(client.callMore("org.example.test.Flood", json{{"size", size}}, [&](Reply& reply) {
      ++received;
      sent = reply.parameters.value("sent", std::int64_t{-1});
      return true;
    }));
    EXPECT_EQ(received, sent) << "all that were accepted have come";
    EXPECT_GT(sent, 0);
  }
}

TEST(ServerLimits, AStreamThatWaitsForRoomLosesNothing) {
  TestServer server;
  auto client = server.client();
  std::int64_t received = 0;
  ASSERT_TRUE(client.callMore("org.example.test.Pour", json{{"count", 200}, {"size", 50'000}}, [&](Reply& reply) {
    EXPECT_EQ(reply.parameters.at("number"), ++received);
    EXPECT_EQ(reply.continues, received < 200);
    return true;
  }));
  EXPECT_EQ(received, 200);
  EXPECT_GT(server.inLoop([&] { return server.waits_; }), 0U) << "that was more than the queue takes";
  EXPECT_TRUE(client.call(kEcho, json{{"text", "x"}}));
}

TEST(ServerLimits, AStreamThatWaitsForRoomEndsWithItsClient) {
  TestServer server;
  {
    auto socket = server.connect();
    sendRaw(socket, formatCall("org.example.test.Pour", json{{"count", 1000}, {"size", 50'000}}, "more") + '\0');
    ASSERT_TRUE(server.eventually([&] { return server.waits_ > 0; }));
  }
  EXPECT_TRUE(server.eventually([&] { return server.closed_.size() == 1; }));
  EXPECT_TRUE(server.client().call(kEcho, json{{"text", "x"}}));
}

TEST(ServerLimits, UnfinishedMessagesOfAllTogetherAreBounded) {
  ServerOptions options;
  options.limits.unfinishedBytes = 300'000;
  TestServer server(std::move(options));
  const std::string part(100'000, ' ');
  std::vector<UniqueFd> sockets;
  for (int count = 0; count < 3; ++count) {
    sockets.push_back(server.connect());
    sendRaw(sockets.back(), part);
  }
  ASSERT_TRUE(server.eventually([&] { return server.server().connectionCount() == 3; }));
  std::this_thread::sleep_for(20ms);
  auto last = server.connect();
  static_cast<void>(::send(last.get(), part.data(), part.size(), MSG_NOSIGNAL));
  EXPECT_TRUE(isClosed(last));
  EXPECT_EQ(server.inLoop([&] { return server.server().connectionCount(); }), 3U);
  sockets.clear();
  ASSERT_TRUE(server.eventually([&] { return server.server().connectionCount() == 0; }));
  auto client = server.client();
  EXPECT_TRUE(client.call(kEcho, json{{"text", part}})) << "what was given up is no longer counted";
}

TEST(ServerLimits, AMessagePastTheLimitIsClosed) {
  TestServer server;
  auto socket = server.connect();
  const std::string part(1 << 20, ' ');
  bool open = true;
  for (std::size_t sent = 0; open && sent <= kMessageLimit + (std::size_t{2} << 20); sent += part.size()) {
    open = ::send(socket.get(), part.data(), part.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(part.size());
  }
  EXPECT_FALSE(open);
  EXPECT_TRUE(server.eventually([&] { return server.closed_.size() == 1; }));
}

TEST(ServerLimits, MessagesAreLimitedInBothDirections) {
  ServerOptions options;
  options.limits.messageBytes = 100'000;
  TestServer server(std::move(options));
  auto client = server.client();
  const auto fits = client.call(kEcho, json{{"text", std::string(99'000, 'x')}});
  ASSERT_TRUE(fits);
  EXPECT_TRUE(fits->error.empty());
  const auto answer = client.call("org.example.test.Large", json{{"size", 100'000}});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->parameters.at("errnoName"), "EMSGSIZE");
  EXPECT_FALSE(client.call(kEcho, json{{"text", std::string(100'001, 'x')}})) << "the connection is closed";
}

class ListeningServer : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "btfd-server-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    path_ = directory_ + "/socket";
  }

  void TearDown() override { std::filesystem::remove_all(directory_); }

  void listen(TestServer& server) {
    auto socket = listenAt(path_, 0600);
    ASSERT_TRUE(socket);
    ASSERT_TRUE(server.inLoop([&] { return server.server().listen(std::move(*socket)).has_value(); }));
  }

  /// Connects, and tells whether a call is answered.
  std::optional<Client> servedClient() {
    auto client = Client::connect(path_);
    if (!client || !client->setTimeout(5s) || !client->call(kEcho, json{{"text", "x"}})) {
      return std::nullopt;
    }
    return std::move(*client);
  }

  std::string directory_;
  std::string path_;
};

TEST_F(ListeningServer, ConnectionsPastTheLimitOfAUserAreClosedNotLeftHanging) {
  ServerOptions options;
  options.limits.connectionsPerUser = 3;
  options.limits.connectionsOfRoot = 3;
  TestServer server(std::move(options));
  listen(server);
  std::vector<Client> clients;
  for (int count = 0; count < 3; ++count) {
    auto client = servedClient();
    ASSERT_TRUE(client);
    clients.push_back(std::move(*client));
  }
  EXPECT_FALSE(servedClient());
  clients.pop_back();
  ASSERT_TRUE(server.eventually([&] { return server.server().connectionCount() == 2; }));
  EXPECT_TRUE(servedClient());
}

TEST_F(ListeningServer, RefusedConnectionsAreToldOnceForMany) {
  ServerOptions options;
  options.limits.connectionsPerUser = 0;
  options.limits.connectionsOfRoot = 0;
  std::vector<std::string> told;
  options.log = [&](LogLevel level, const std::string& message) {
    if (level == LogLevel::info) {
      told.push_back(message);
    }
  };
  TestServer server(std::move(options));
  listen(server);
  for (int count = 0; count < 5; ++count) {
    EXPECT_FALSE(servedClient());
  }
  server.inLoop([&] {
    ASSERT_EQ(told.size(), 1U);
    EXPECT_TRUE(told.front().contains("user " + std::to_string(::geteuid()) + " was refused")) << told.front();
  });
}

TEST_F(ListeningServer, ConnectionsPastTheTotalAreClosed) {
  ServerOptions options;
  options.limits.connections = 2;
  TestServer server(std::move(options));
  listen(server);
  const auto one = servedClient();
  const auto two = servedClient();
  ASSERT_TRUE(one && two);
  EXPECT_FALSE(servedClient());
}

TEST_F(ListeningServer, FiveHundredConnectionsAtOnceAreServed) {
  if (::getuid() != 0) {
    GTEST_SKIP() << "only root may have so many";
  }
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_cur < 1200) {
    GTEST_SKIP() << "needs 1200 file descriptors";
  }
  TestServer server;
  listen(server);
  std::vector<Client> clients;
  for (int count = 0; count < 500; ++count) {
    auto client = Client::connect(path_);
    ASSERT_TRUE(client) << client.error().message;
    clients.push_back(std::move(*client));
  }
  for (auto& client : clients) {
    ASSERT_TRUE(client.call(kEcho, json{{"text", "x"}}));
  }
}

TEST_F(ListeningServer, WhenDescriptorsRunOutItWaitsWithoutSpinningAndRecovers) {
  TestServer server;
  listen(server);
  auto waiting = Client::connect(path_); // Warm: whatever the first connection opens is open.
  ASSERT_TRUE(waiting);
  ASSERT_TRUE(waiting->call(kEcho, json{{"text", "x"}}));
  UniqueFd next(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = SocketAddress::of(path_).value();
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  rlimit low = old;
  low.rlim_cur = static_cast<rlim_t>(next.get()) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const int connected = ::connect(next.get(), address.generic(), address.size());
  std::this_thread::sleep_for(350ms);
  const auto warnings = server.messages().size();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  ASSERT_EQ(connected, 0);
  EXPECT_GE(warnings, 1U);
  EXPECT_LE(warnings, 6U) << "one try in a hundred milliseconds";
  Client client(std::move(next));
  ASSERT_TRUE(client.setTimeout(5s));
  EXPECT_TRUE(client.call(kEcho, json{{"text", "x"}})) << "served once there are descriptors again";
}

} // namespace
} // namespace btfd::varlink
