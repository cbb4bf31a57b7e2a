#pragma once

#include "base/closers.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "varlink/limits.h"
#include "varlink/peer.h"

#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace btfd::varlink {

class Service;

namespace detail {
class ServerCore;
}

enum class LogLevel { debug, info, warning, error };

/// What a server asks and tells its owner. All of it is called on the io_context's thread, and each may be left empty.
struct ServerOptions {
  Limits limits;

  /// Close the connections and the descriptors that come with calls, so that no client can make the thread wait. With
  /// none, all is closed in place.
  Closers* closers = nullptr;

  /// Whether a peer may call anything at all, asked at its first call. If not, that call is answered with
  /// org.varlink.service.PermissionDenied and the connection is closed.
  std::function<bool(const Peer&)> authorize;

  /// Who may call, in words: becomes the field "message" of that PermissionDenied. The standard's error has none, so
  /// none is sent where this is empty.
  std::string whoMayCall;

  /// A connection is gone and all of its calls have been answered or destroyed: the place to end what lived as long as
  /// the connection. Called once for each connection.
  std::function<void(const Peer&)> onConnectionClosed;

  /// debug: what peers did wrong. info: that peers were refused for a limit, told once for many. warning: shortage of
  /// file descriptors and the like. error: bugs of handlers.
  std::function<void(LogLevel, const std::string&)> log;

  /// Check answers against the IDL and log (error) those that do not fit; they are sent all the same. For tests: costs
  /// a copy of each answer.
  bool checkReplies = false;
};

/// Serves a Service to the clients of listening sockets. Everything happens on the one thread that runs the io_context;
/// no call of this class or of a handler may come from another.
///
/// The calls of one connection are handled in order, each when the one before was answered and the peer took the
/// answer. Connections don't wait for each other. What a client has sent before it went away is still handled.
class Server {
 public:
  /// `context` and `service` outlive the server.
  Server(boost::asio::io_context& context, const Service& service, ServerOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// As `stop`, and forgets the callbacks of the options: none is called from here on.
  ~Server();

  /// Accepts clients on `socket`, which is bound and listening: from listenAt or from socket activation. May be called
  /// for several sockets.
  Result<void> listen(UniqueFd socket);

  /// Serves a connected stream AF_UNIX socket.
  Result<void> serve(UniqueFd socket);

  /// Stops listening and closes all connections; onConnectionClosed follows as the io_context runs. Calls under way
  /// have their onDisconnect called.
  void stop();

  [[nodiscard]] std::size_t connectionCount() const;

 private:
  std::shared_ptr<detail::ServerCore> core_;
};

} // namespace btfd::varlink
