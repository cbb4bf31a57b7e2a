#include "varlink/client.h"

#include "varlink/frame_writer.h"
#include "varlink/message.h"
#include "varlink/socket_address.h"

#include <cerrno>

#include <sys/socket.h>
#include <sys/time.h>

namespace btfd::varlink {

Result<Client> Client::connect(const std::string& path) {
  const auto address = SocketAddress::of(path);
  if (!address) {
    return std::unexpected(address.error());
  }
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) {
    return failErrno("create a socket", errno);
  }
  int result = -1;
  do {
    result = ::connect(socket.get(), address->generic(), address->size());
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    return failErrno("connect to " + path, errno);
  }
  return Client(std::move(socket));
}

Result<Reply> Client::call(std::string_view method, const nlohmann::json& parameters,
                           std::span<const BorrowedFd> descriptors) {
  if (auto sent = send(method, parameters, descriptors, nullptr); !sent) {
    return std::unexpected(std::move(sent.error()));
  }
  auto reply = receive();
  if (reply && reply->continues) {
    return disconnect({std::string(method) + ": the service answered a plain call with a stream", EPROTO});
  }
  return reply;
}

Result<void> Client::callMore(std::string_view method, const nlohmann::json& parameters,
                              const std::function<bool(Reply&)>& onReply) {
  if (auto sent = startMore(method, parameters); !sent) {
    return sent;
  }
  for (;;) {
    auto reply = receive();
    if (!reply) {
      return std::unexpected(std::move(reply.error()));
    }
    const bool last = !reply->continues;
    const bool goOn = onReply(*reply);
    if (last) {
      return {};
    }
    if (!goOn) {
      socket_.reset();
      return {};
    }
  }
}

Result<void> Client::startMore(std::string_view method, const nlohmann::json& parameters) {
  return send(method, parameters, {}, "more");
}

Result<void> Client::callOneway(std::string_view method, const nlohmann::json& parameters,
                                std::span<const BorrowedFd> descriptors) {
  return send(method, parameters, descriptors, "oneway");
}

Result<void> Client::setTimeout(std::chrono::milliseconds timeout) {
  timeval value{};
  value.tv_sec = timeout.count() / 1000;
  value.tv_usec = timeout.count() % 1000 * 1000;
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    if (::setsockopt(socket_.get(), SOL_SOCKET, option, &value, sizeof value) != 0) {
      return failErrno("set the time-out of a connection", errno);
    }
  }
  return {};
}

Result<void> Client::send(std::string_view method, const nlohmann::json& parameters,
                          std::span<const BorrowedFd> descriptors, const char* flag) {
  if (!socket_) {
    return failErrno(method, ENOTCONN);
  }
  if (auto sent = sendFrame(socket_, formatCall(method, parameters, flag), descriptors); !sent) {
    return disconnect(std::move(sent.error()).within(method));
  }
  return {};
}

Result<Reply> Client::receive() {
  Frame frame;
  auto outcome = reader_.read(socket_, frame);
  while (outcome && *outcome == FrameReader::Outcome::progress) {
    outcome = reader_.read(socket_, frame);
  }
  if (!outcome) {
    return disconnect(outcome.error());
  }
  if (*outcome == FrameReader::Outcome::incomplete) {
    return disconnect({"the service did not answer in time", ETIMEDOUT});
  }
  if (*outcome == FrameReader::Outcome::closed) {
    return disconnect({"the service closed the connection", ECONNRESET});
  }
  if (frame.descriptorError != 0) {
    return disconnect(Error::fromErrno("receive the descriptors of an answer", frame.descriptorError));
  }
  auto message = parseReply(frame.text);
  if (!message) {
    return disconnect(std::move(message.error()));
  }
  return Reply{std::move(message->error), std::move(message->parameters), std::move(frame.descriptors),
               message->continues};
}

std::unexpected<Error> Client::disconnect(Error error) {
  socket_.reset();
  return std::unexpected(std::move(error));
}

} // namespace btfd::varlink
