#pragma once

#include "varlink/call.h"
#include "varlink/frame_reader.h"
#include "varlink/frame_writer.h"
#include "varlink/server.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace btfd::varlink::detail {

/// What connections know of their server.
class ConnectionHost {
 public:
  virtual ~ConnectionHost() = default;

  /// Answers the call, or has it answered later.
  virtual void dispatch(Call call) = 0;
  [[nodiscard]] virtual bool authorize(const Peer& peer) = 0;
  virtual void log(LogLevel level, const std::string& message) = 0;
  [[nodiscard]] virtual const ServerOptions& options() const = 0;

  /// Accounts `now` bytes of an unfinished message instead of `before`. False if there is no room for more.
  [[nodiscard]] virtual bool accountUnfinished(std::size_t before, std::size_t now) = 0;

  /// The connection is over.
  virtual void onClosed(const Peer& peer) = 0;
};

/// One client. A coroutine (`run`) moves the bytes; what they mean is decided by plain functions.
///
/// Two things can end a connection: the peer goes away, or `abandon`. The latter only shuts the socket down, so that
/// both take the same way: the hang-up is noticed, a call under way learns of it, its answer is awaited and dropped.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::io_context& context, UniqueFd socket, Peer peer, std::shared_ptr<ConnectionHost> host);

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  /// Begins to serve. The connection keeps itself alive until it is over.
  void start();

  /// Gives up on the peer and logs why.
  void abandon(const std::string& reason);

  [[nodiscard]] const Peer& peer() const { return *peer_; }

  // For Call:

  [[nodiscard]] bool reachable() const { return !peerGone_; }

  /// Bytes of one message.
  [[nodiscard]] std::size_t messageLimit() const { return host_->options().limits.messageBytes; }

  bool notify(std::string text, std::vector<UniqueFd> descriptors);
  void send(std::string text, std::vector<UniqueFd> descriptors);
  void onCallDone();
  void onDisconnect(std::function<void()> callback);
  void whenSent(std::function<void()> callback);
  [[nodiscard]] Result<UniqueFd> peerProcess();
  void checkReply(const Call& call, const nlohmann::json& parameters);
  void reportUnanswered(const std::string& method);

 private:
  enum class Step { wait, yield, handled, end };

  boost::asio::awaitable<void> run();
  boost::asio::awaitable<void> drain();
  Step step();
  void handle(Frame frame);

  [[nodiscard]] bool busy() const { return callPending_ || !writer_.empty(); }

  bool updateUnfinished();
  void flush();
  void postSent();
  void watchHangup();
  void onHangup();
  void arm(boost::asio::steady_timer& timer, std::chrono::milliseconds timeout, const char* reason);
  void finish();
  void closeSocket();
  [[nodiscard]] Closer* closerOfPeer() const;
  [[nodiscard]] bool mayHave(const Frame& frame) const;

  [[nodiscard]] BorrowedFd socket() { return BorrowedFd(socket_.native_handle()); }

  std::shared_ptr<ConnectionHost> host_;
  std::shared_ptr<const Peer> peer_;
  boost::asio::posix::stream_descriptor socket_;
  boost::asio::steady_timer receiveTimer_;
  boost::asio::steady_timer sendTimer_;
  boost::asio::steady_timer idle_; ///< Never expires; cancelled to say that `busy` may have changed.
  FrameReader reader_;
  FrameWriter writer_;
  std::function<void()> onDisconnect_; ///< Of the call under way.
  std::function<void()> onSent_;       ///< Of the call under way.
  std::size_t accounted_ = 0;          ///< Bytes of an unfinished message that the host knows of.
  bool authorized_ = false;
  bool callPending_ = false;
  bool draining_ = false;
  bool largeCall_ = false; ///< The call under way took much memory.
  bool peerGone_ = false;  ///< Nothing can be sent any more.
  bool closing_ = false;   ///< Nothing is to be read any more.
};

} // namespace btfd::varlink::detail
