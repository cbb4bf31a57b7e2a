#include "varlink/server.h"

#include "varlink/connection.h"
#include "varlink/service.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>

namespace btfd::varlink {

namespace asio = boost::asio;
using asio::posix::stream_descriptor;
using boost::system::error_code;

namespace detail {

namespace {

/// Connections accepted in one go: a burst of them must not keep the thread from those that are there.
constexpr int kAcceptTurn = 64;

/// Rest after accept failed for want of descriptors or memory. The waiting client stays in the backlog meanwhile; to
/// try again at once would spin, since the socket stays readable.
constexpr std::chrono::milliseconds kAcceptPause{100};

/// At most one message about refused connections in this time: who is refused often tries again at once.
constexpr std::chrono::minutes kRefusalPause{1};

} // namespace

/// What a Server is made of. Connections share it, and may outlive the Server by a turn of the event loop.
class ServerCore final : public ConnectionHost, public std::enable_shared_from_this<ServerCore> {
 public:
  ServerCore(asio::io_context& context, const Service& service, ServerOptions options)
      : context_(context), service_(&service), options_(std::move(options)) {}

  Result<void> listen(UniqueFd socket);
  Result<void> serve(UniqueFd socket);
  void stop();
  void forgetOwner();

  [[nodiscard]] std::size_t connectionCount() const { return connections_.size(); }

  void dispatch(Call call) override;
  bool authorize(const Peer& peer) override;
  void log(LogLevel level, const std::string& message) override;
  bool accountUnfinished(std::size_t before, std::size_t now) override;
  void onClosed(const Peer& peer) override;

  [[nodiscard]] const ServerOptions& options() const override { return options_; }

 private:
  using Listener = std::shared_ptr<stream_descriptor>;

  asio::awaitable<void> acceptFrom(Listener listener);
  bool acceptSome(BorrowedFd listener);
  [[nodiscard]] bool hasRoomFor(uid_t uid) const;
  void noteRefusal(uid_t uid);

  [[nodiscard]] Closer* socketCloser() const {
    return options_.closers == nullptr ? nullptr : &options_.closers->forSockets();
  }

  asio::io_context& context_;
  const Service* service_;
  ServerOptions options_;
  std::vector<Listener> listeners_;
  std::unordered_map<std::uint64_t, std::weak_ptr<Connection>> connections_; ///< They keep themselves alive.
  std::unordered_map<uid_t, std::size_t> connectionsOfUser_;
  std::uint64_t lastConnection_ = 0;
  std::size_t unfinishedBytes_ = 0;
  std::optional<std::chrono::steady_clock::time_point> refusalNoted_;
  std::size_t refusedSince_ = 0; ///< Refusals that were not noted.
};

Result<void> ServerCore::listen(UniqueFd socket) {
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return failErrno("prepare a listening socket", errno);
  }
  int listening = 0;
  socklen_t size = sizeof listening;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0) {
    return fail("socket to serve does not listen", EINVAL);
  }
  auto listener = std::make_shared<stream_descriptor>(context_, socket.release());
  listeners_.push_back(listener);
  asio::co_spawn(
      context_, [self = shared_from_this(), listener] { return self->acceptFrom(listener); }, asio::detached);
  return {};
}

asio::awaitable<void> ServerCore::acceptFrom(Listener listener) {
  error_code error;
  auto result = asio::redirect_error(asio::use_awaitable, error);
  asio::steady_timer pause(context_);
  for (;;) {
    co_await listener->async_wait(stream_descriptor::wait_read, result);
    if (!listener->is_open()) {
      co_return;
    }
    if (!acceptSome(BorrowedFd(listener->native_handle()))) {
      pause.expires_after(kAcceptPause);
      co_await pause.async_wait(result);
      if (!listener->is_open()) {
        co_return;
      }
    }
  }
}

/// Accepts who waits. False if the process lacks something for it.
bool ServerCore::acceptSome(BorrowedFd listener) {
  for (int count = 0; count < kAcceptTurn; ++count) {
    UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK), socketCloser());
    if (socket) {
      if (const auto served = serve(std::move(socket)); !served) {
        log(LogLevel::debug, served.error().message);
      }
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return true;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      log(LogLevel::warning, Error::fromErrno("accept a connection", errno).message);
      return false;
    }
  }
  return true;
}

Result<void> ServerCore::serve(UniqueFd socket) {
  auto peer = readPeer(socket, lastConnection_ + 1);
  if (!peer) {
    return std::unexpected(std::move(peer.error()));
  }
  if (!hasRoomFor(peer->uid)) {
    noteRefusal(peer->uid);
    return fail("connection of uid " + std::to_string(peer->uid) +
                    " refused: too many connections, or descriptors that wait to be closed",
                EBUSY);
  }
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if ((flags & O_NONBLOCK) == 0 && ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return failErrno("prepare a connection", errno);
  }
  ++connectionsOfUser_[peer->uid];
  const auto connection =
      std::make_shared<Connection>(context_, std::move(socket), std::move(*peer), shared_from_this());
  connections_.emplace(++lastConnection_, connection);
  connection->start();
  return {};
}

bool ServerCore::hasRoomFor(uid_t uid) const {
  const Limits& limits = options_.limits;
  const auto found = connectionsOfUser_.find(uid);
  const std::size_t ofUser = found == connectionsOfUser_.end() ? 0 : found->second;
  if (options_.closers != nullptr && options_.closers->ofUser(uid).pending() >= limits.unclosedDescriptors) {
    return false;
  }
  return connections_.size() < limits.connections &&
         ofUser < (uid == 0 ? limits.connectionsOfRoot : limits.connectionsPerUser);
}

void ServerCore::noteRefusal(uid_t uid) {
  const auto now = std::chrono::steady_clock::now();
  if (refusalNoted_ && now - *refusalNoted_ < kRefusalPause) {
    ++refusedSince_;
    return;
  }
  const auto found = connectionsOfUser_.find(uid);
  const std::size_t ofUser = found == connectionsOfUser_.end() ? 0 : found->second;
  std::string message = "a connection of user " + std::to_string(uid) + " was refused: it has " +
                        std::to_string(ofUser) + ", and there are " + std::to_string(connections_.size()) +
                        " in all, which is the limit of one or the other";
  if (refusedSince_ > 0) {
    message += "; " + std::to_string(refusedSince_) + " more since the last such message";
  }
  log(LogLevel::info, message);
  refusalNoted_ = now;
  refusedSince_ = 0;
}

void ServerCore::stop() {
  for (const auto& listener : listeners_) {
    // Closing it closes what clients who were not accepted yet have sent.
    const UniqueFd closed(listener->release(), socketCloser());
  }
  listeners_.clear();
  for (const auto& [id, weak] : connections_) {
    if (const auto connection = weak.lock()) {
      connection->abandon("the service stops");
    }
  }
}

void ServerCore::forgetOwner() {
  options_.authorize = nullptr;
  options_.onConnectionClosed = nullptr;
  options_.log = nullptr;
  service_ = nullptr;
}

void ServerCore::dispatch(Call call) {
  if (service_ != nullptr) {
    service_->dispatch(std::move(call));
  }
}

bool ServerCore::authorize(const Peer& peer) {
  return !options_.authorize || options_.authorize(peer);
}

void ServerCore::log(LogLevel level, const std::string& message) {
  if (options_.log) {
    options_.log(level, message);
  }
}

bool ServerCore::accountUnfinished(std::size_t before, std::size_t now) {
  unfinishedBytes_ += now - before;
  return now <= before || unfinishedBytes_ <= options_.limits.unfinishedBytes;
}

void ServerCore::onClosed(const Peer& peer) {
  connections_.erase(peer.connection);
  const auto ofUser = connectionsOfUser_.find(peer.uid);
  if (ofUser != connectionsOfUser_.end() && --ofUser->second == 0) {
    connectionsOfUser_.erase(ofUser);
  }
  if (options_.onConnectionClosed) {
    options_.onConnectionClosed(peer);
  }
}

} // namespace detail

Server::Server(asio::io_context& context, const Service& service, ServerOptions options)
    : core_(std::make_shared<detail::ServerCore>(context, service, std::move(options))) {}

Server::~Server() {
  core_->stop();
  core_->forgetOwner();
}

Result<void> Server::listen(UniqueFd socket) {
  return core_->listen(std::move(socket));
}

Result<void> Server::serve(UniqueFd socket) {
  return core_->serve(std::move(socket));
}

void Server::stop() {
  core_->stop();
}

std::size_t Server::connectionCount() const {
  return core_->connectionCount();
}

} // namespace btfd::varlink
