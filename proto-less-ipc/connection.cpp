#include "varlink/connection.h"

#include "base/ready.h"
#include "varlink/call_state.h"
#include "varlink/errors.h"
#include "varlink/validate.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <utility>

#include <malloc.h>
#include <poll.h>
#include <sys/socket.h>

namespace btfd::varlink::detail {

namespace asio = boost::asio;
using asio::posix::stream_descriptor;
using boost::system::error_code;

namespace {

constexpr auto kNever = asio::steady_timer::time_point::max();

/// Bytes of a call from which on its memory is worth to be given back.
constexpr std::size_t kLargeCall = std::size_t{1} << 20;

bool hasDeadline(const asio::steady_timer& timer) {
  return timer.expiry() != kNever;
}

void disarm(asio::steady_timer& timer) {
  timer.expires_at(kNever);
}

} // namespace

Connection::Connection(asio::io_context& context, UniqueFd socket, Peer peer, std::shared_ptr<ConnectionHost> host)
    : host_(std::move(host)), peer_(std::make_shared<const Peer>(std::move(peer))), socket_(context, socket.release()),
      receiveTimer_(context, kNever), sendTimer_(context, kNever), idle_(context, kNever),
      reader_(host_->options().limits.messageBytes, closerOfPeer()) {}

Connection::~Connection() {
  closeSocket(); // of one that was not over when the event loop ended
}

void Connection::start() {
  watchHangup();
  asio::co_spawn(socket_.get_executor(), [self = shared_from_this()] { return self->run(); }, asio::detached);
}

void Connection::abandon(const std::string& reason) {
  host_->log(LogLevel::debug, "connection of pid " + std::to_string(peer_->pid) + ", uid " +
                                  std::to_string(peer_->uid) + " closed: " + reason);
  closing_ = true;
  ::shutdown(socket_.native_handle(), SHUT_RDWR);
}

// ---- Moving bytes ---------------------------------------------------------------------------------------------------

asio::awaitable<void> Connection::run() {
  error_code error;
  auto result = asio::redirect_error(asio::use_awaitable, error);
  Step next = Step::wait;
  while (next != Step::end) {
    if (next == Step::wait) {
      co_await socket_.async_wait(stream_descriptor::wait_read, result);
    } else if (next == Step::yield) {
      co_await asio::post(socket_.get_executor(), asio::use_awaitable);
    }
    next = step();
    while (busy()) {
      co_await idle_.async_wait(result);
    }
  }
  finish();
}

/// Takes what the peer sent, up to one message, and says how to go on.
Connection::Step Connection::step() {
  if (closing_) {
    return Step::end;
  }
  Frame frame;
  const auto outcome = reader_.read(socket(), frame);
  if (!outcome) {
    abandon(outcome.error().message);
    return Step::end;
  }
  if (!updateUnfinished()) {
    abandon("too many bytes of unfinished messages");
    return Step::end;
  }
  switch (*outcome) {
  case FrameReader::Outcome::message:
    if (!mayHave(frame)) {
      abandon("too many descriptors of its user wait to be closed");
      return Step::end;
    }
    handle(std::move(frame));
    return reader_.sawMore() ? Step::yield : Step::wait;
  case FrameReader::Outcome::progress:
    return Step::yield;
  case FrameReader::Outcome::incomplete:
    return Step::wait;
  case FrameReader::Outcome::closed:
    break;
  }
  return Step::end;
}

/// Keeps the host's sum and the deadline of an unfinished message up to date.
bool Connection::updateUnfinished() {
  const std::size_t now = reader_.unfinishedBytes();
  const std::size_t before = std::exchange(accounted_, now);
  if (before == 0 && now > 0) {
    arm(receiveTimer_, host_->options().limits.receive, "a message was not complete in time");
  } else if (before > 0 && now == 0) {
    disarm(receiveTimer_);
  }
  return now == before || host_->accountUnfinished(before, now);
}

void Connection::send(std::string text, std::vector<UniqueFd> descriptors) {
  if (!peerGone_) {
    writer_.enqueue(std::move(text), std::move(descriptors));
    flush();
  }
}

bool Connection::notify(std::string text, std::vector<UniqueFd> descriptors) {
  const Limits& limits = host_->options().limits;
  if (peerGone_ || writer_.queuedMessages() >= limits.queuedNotifications ||
      (!writer_.empty() && writer_.queuedBytes() + text.size() > limits.queuedBytes)) {
    return false;
  }
  send(std::move(text), std::move(descriptors));
  return !peerGone_;
}

void Connection::flush() {
  if (draining_) {
    return;
  }
  const auto sent = writer_.flush(socket());
  if (!sent) {
    // Not from within the handler that sends: what is called for a hang-up may destroy the handler's Call.
    asio::post(socket_.get_executor(), [self = shared_from_this()] { self->onHangup(); });
    peerGone_ = true;
    writer_.clear();
  } else if (!*sent) {
    draining_ = true;
    asio::co_spawn(socket_.get_executor(), [self = shared_from_this()] { return self->drain(); }, asio::detached);
  }
}

/// Sends what the socket did not take at once.
asio::awaitable<void> Connection::drain() {
  error_code error;
  auto result = asio::redirect_error(asio::use_awaitable, error);
  std::size_t sentMessages = 0;
  while (!writer_.empty()) {
    if (!hasDeadline(sendTimer_) || sentMessages != writer_.sentMessages()) {
      sentMessages = writer_.sentMessages();
      arm(sendTimer_, host_->options().limits.send, "an answer was not read in time");
    }
    co_await socket_.async_wait(stream_descriptor::wait_write, result);
    if (const auto sent = writer_.flush(socket()); !sent) {
      onHangup();
    }
  }
  draining_ = false;
  disarm(sendTimer_);
  idle_.cancel();
  postSent();
}

void Connection::whenSent(std::function<void()> callback) {
  if (peerGone_) {
    return;
  }
  onSent_ = std::move(callback);
  postSent();
}

/// Has the callback called if nothing is left to be sent by then; else `drain` does this again.
void Connection::postSent() {
  if (!onSent_) {
    return;
  }
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->draining_) {
      return;
    }
    if (const auto callback = std::exchange(self->onSent_, nullptr)) {
      callback();
    }
  });
}

void Connection::arm(asio::steady_timer& timer, std::chrono::milliseconds timeout, const char* reason) {
  timer.expires_after(timeout);
  timer.async_wait([weak = weak_from_this(), &timer, reason](const error_code& error) {
    const auto self = weak.lock();
    // A timer that was set anew after this was queued, but before it runs, is not due.
    if (self && !error && timer.expiry() <= asio::steady_timer::clock_type::now()) {
      self->abandon(reason);
    }
  });
}

/// Asio's wait for "errors" is for EPOLLPRI, EPOLLERR and EPOLLHUP: unlike a wait for reading, it is not disturbed by
/// pipelined calls, and a peer that only shut down its sending side (as `nc -N`) still gets its answers. Out-of-band
/// data, which would also end it, is no part of Varlink. And it may end for no reason; see isReady.
void Connection::watchHangup() {
  socket_.async_wait(stream_descriptor::wait_error, [weak = weak_from_this()](const error_code& error) {
    const auto self = weak.lock();
    if (!self || error || !self->socket_.is_open()) {
      return;
    }
    if (isReady(self->socket(), POLLPRI)) {
      self->onHangup();
    } else {
      self->watchHangup();
    }
  });
}

/// Nobody reads answers any more. What was received before is still handled.
void Connection::onHangup() {
  peerGone_ = true;
  writer_.clear();
  // What it holds, the call perhaps, goes when this function is done.
  const auto neverSent = std::exchange(onSent_, nullptr);
  if (const auto callback = std::exchange(onDisconnect_, nullptr)) {
    callback();
  }
  idle_.cancel();
}

void Connection::finish() {
  peerGone_ = true;
  if (accounted_ > 0) {
    static_cast<void>(host_->accountUnfinished(std::exchange(accounted_, 0), 0));
  }
  disarm(receiveTimer_);
  closeSocket();
  host_->onClosed(*peer_);
}

void Connection::closeSocket() {
  if (socket_.is_open()) {
    // The peer is to learn of it even if the close takes its time: it closes what lies unread in the socket.
    ::shutdown(socket_.native_handle(), SHUT_RDWR);
    Closers* closers = host_->options().closers;
    const UniqueFd closed(socket_.release(), closers == nullptr ? nullptr : &closers->forSockets());
  }
}

Closer* Connection::closerOfPeer() const {
  Closers* closers = host_->options().closers;
  return closers == nullptr ? nullptr : &closers->ofUser(peer_->uid);
}

/// Whether the peer's user may have the service keep another message's descriptors.
bool Connection::mayHave(const Frame& frame) const {
  const Closer* closer = closerOfPeer();
  return frame.descriptors.empty() || closer == nullptr ||
         closer->pending() < host_->options().limits.unclosedDescriptors;
}

// ---- What they mean -------------------------------------------------------------------------------------------------

void Connection::handle(Frame frame) {
  largeCall_ = frame.text.size() > kLargeCall;
  auto message = parseCall(frame.text);
  if (!message) {
    return abandon(message.error().message);
  }
  auto state = std::make_unique<Call::State>();
  state->connection = weak_from_this();
  state->peer = peer_;
  state->message = std::move(*message);
  state->descriptors = std::move(frame.descriptors);
  state->descriptorError = frame.descriptorError;
  callPending_ = true;
  Call call(std::move(state));

  if (!authorized_ && !host_->authorize(*peer_)) {
    const std::string& who = host_->options().whoMayCall;
    call.error(errors::kPermissionDenied, who.empty() ? nlohmann::json::object() : nlohmann::json{{"message", who}});
    closing_ = true; // The loop of `run` still waits until the answer is sent.
    return;
  }
  authorized_ = true;
  const std::string method = call.method();
  try {
    host_->dispatch(std::move(call));
  } catch (const std::exception& error) {
    // A bug, but one that a client can trigger must not end the service for all. The Call has answered by its
    // destruction.
    host_->log(LogLevel::error, "handler of " + method + " threw: " + error.what());
  }
}

void Connection::onCallDone() {
  callPending_ = false;
  onDisconnect_ = nullptr;
  onSent_ = nullptr;
  if (std::exchange(largeCall_, false)) {
    // Once the call and what was made of it are gone. Else the heap, with something small at its end, stays as large.
    asio::post(socket_.get_executor(), [] { ::malloc_trim(0); });
  }
  idle_.cancel();
}

void Connection::onDisconnect(std::function<void()> callback) {
  onDisconnect_ = std::move(callback);
  if (peerGone_) {
    asio::post(socket_.get_executor(), [self = shared_from_this()] { self->onHangup(); });
  }
}

Result<UniqueFd> Connection::peerProcess() {
  return varlink::peerProcess(socket());
}

void Connection::checkReply(const Call& call, const nlohmann::json& parameters) {
  const auto& state = *call.state_;
  if (!host_->options().checkReplies || state.definition == nullptr) {
    return;
  }
  nlohmann::json copy = parameters.is_null() ? nlohmann::json::object() : parameters;
  if (const auto valid = validate(*state.interface, state.definition->output, copy); !valid) {
    host_->log(LogLevel::error, "answer of " + call.method() + " does not fit its IDL: \"" + valid.error().path +
                                    "\" " + valid.error().reason);
  }
}

void Connection::reportUnanswered(const std::string& method) {
  host_->log(LogLevel::error, "handler of " + method + " did not answer");
}

} // namespace btfd::varlink::detail
