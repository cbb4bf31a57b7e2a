// Descriptors whose close blocks must not make the server wait, wherever it has them when it lets go of them.
#include "base/closers.h"
#include "test_support.h"
#include "test_support/files.h"
#include "test_support/lingering_socket.h"
#include "test_support/send_descriptors.h"
#include "varlink/listen.h"

#include <array>
#include <span>

namespace btfd::varlink {
namespace {

using nlohmann::json;
using test::sendRaw;
using test::TestServer;

constexpr std::string_view kEcho = "org.example.test.Echo";

class ServerClosing : public testing::Test {
 protected:
  ServerClosing() { EXPECT_TRUE(closers_.start()); }

  ServerOptions options() {
    ServerOptions options;
    options.closers = &closers_;
    return options;
  }

  /// Sends `text`, of two bytes at least, with the lingering socket, so that the server gets the last descriptor of it.
  void sendWithSocket(BorrowedFd connection, const std::string& text) {
    const UniqueFd lingering = socket_.take();
    ASSERT_EQ(test_support::sendWithDescriptors(connection, std::as_bytes(std::span(text).first(1)),
                                                std::array<BorrowedFd, 1>{lingering}),
              1);
    rest_ = text.substr(1);
  }

  /// Sends what `sendWithSocket` has left: by now the descriptor is only the server's.
  void sendRest(BorrowedFd connection) const { sendRaw(connection, rest_); }

  /// Whether the close is under way while the server serves.
  void expectCloseElsewhere(TestServer& server) {
    EXPECT_TRUE(server.eventually([this] { return pending() == 1; }));
    auto other = server.client();
    EXPECT_TRUE(other.call(kEcho, json{{"text", "x"}}));
  }

  static std::string echo() { return formatCall(kEcho, json{{"text", "x"}}, nullptr) + '\0'; }

  /// Descriptors that the server got rid of, but that are not closed.
  std::size_t pending() { return closers_.forSockets().pending() + closers_.ofUser(::getuid()).pending(); }

  Closers closers_;
  test_support::LingeringSocket socket_; ///< Destroyed, it lets all closes end.
  std::string rest_;
};

TEST_F(ServerClosing, OfACallThatTakesNoDescriptors) {
  TestServer server(options());
  const UniqueFd connection = server.connect();
  sendWithSocket(connection, echo());
  sendRest(connection);
  expectCloseElsewhere(server);
  socket_.endClose();
}

TEST_F(ServerClosing, WhoseCloseDoesNotEndAreTakenUpToALimit) {
  auto limited = options();
  limited.limits.unclosedDescriptors = 1;
  TestServer server(std::move(limited));
  auto same = server.client();
  const UniqueFd connection = server.connect();
  sendWithSocket(connection, echo());
  sendRest(connection);
  EXPECT_TRUE(server.eventually([this] { return pending() == 1; }));

  EXPECT_TRUE(same.call(kEcho, json{{"text", "x"}}));
  const auto file = test::fileWith("x");
  const json parameters{{"fileDescriptor", 0}};
  EXPECT_FALSE(same.call("org.example.test.ReadFile", parameters, std::array{BorrowedFd(file)}));
  EXPECT_FALSE(server.inLoop([&] { return server.server().serve(test::socketPair().first).has_value(); }));

  socket_.endClose();
  EXPECT_TRUE(server.eventually([this] { return pending() == 0; }));
  auto later = server.client();
  EXPECT_TRUE(later.call("org.example.test.ReadFile", parameters, std::array{BorrowedFd(file)}));
}

TEST_F(ServerClosing, OfHalfAMessage) {
  TestServer server(options());
  UniqueFd connection = server.connect();
  sendWithSocket(connection, R"({"met)");
  sendRest(connection);
  connection.reset();
  expectCloseElsewhere(server);
  socket_.endClose();
}

TEST_F(ServerClosing, OfWhatIsNoMessage) {
  TestServer server(options());
  const UniqueFd connection = server.connect();
  sendWithSocket(connection, std::string("garbage\0", 8));
  sendRest(connection);
  expectCloseElsewhere(server);
  socket_.endClose();
}

TEST_F(ServerClosing, OfWhatIsNotReadWhenAConnectionEnds) {
  TestServer server(options());
  const UniqueFd connection = server.connect();
  sendRaw(connection, formatCall("org.example.test.Hold", {}, nullptr) + '\0');
  ASSERT_TRUE(server.eventually([&] { return server.held_.size() == 1; }));
  sendWithSocket(connection, echo()); // not read before the first call is answered
  server.inLoop([&] { server.server().stop(); });
  expectCloseElsewhere(server);
  socket_.endClose();
}

TEST_F(ServerClosing, OfWhatCameOverARefusedConnection) {
  const test_support::TemporaryDirectory directory;
  const std::string path = directory / "socket";
  auto listener = listenAt(path, 0600);
  ASSERT_TRUE(listener) << listener.error().message;
  const auto client = Client::connect(path);
  ASSERT_TRUE(client) << client.error().message;
  sendWithSocket(client->socket(), echo());

  auto none = options();
  none.limits.connectionsOfRoot = none.limits.connectionsPerUser = 0;
  TestServer server(std::move(none));
  server.inLoop([&] { EXPECT_TRUE(server.server().listen(std::move(*listener))); });
  EXPECT_TRUE(server.eventually([this] { return pending() == 1; }));
  socket_.endClose();
}

TEST_F(ServerClosing, OfWhatCameOverAConnectionThatWasNotAccepted) {
  const test_support::TemporaryDirectory directory;
  const std::string path = directory / "socket";
  auto listener = listenAt(path, 0600);
  ASSERT_TRUE(listener) << listener.error().message;
  const auto client = Client::connect(path);
  ASSERT_TRUE(client) << client.error().message;
  sendWithSocket(client->socket(), echo());

  TestServer server(options());
  server.inLoop([&] {
    EXPECT_TRUE(server.server().listen(std::move(*listener)));
    server.server().stop();
  });
  EXPECT_TRUE(server.eventually([this] { return pending() == 1; }));
  socket_.endClose();
}

TEST_F(ServerClosing, OfAConnectionThatIsThereWhenTheEventLoopIsDestroyed) {
  {
    boost::asio::io_context context;
    const Service service({"Example", "test", "1.2", "https://example.org"});
    Server server(context, service, options());
    auto [ours, theirs] = test::socketPair();
    ASSERT_TRUE(server.serve(std::move(theirs)));
    sendWithSocket(ours, echo());
  }
  EXPECT_EQ(pending(), 1U);
  socket_.endClose();
}

} // namespace
} // namespace btfd::varlink
