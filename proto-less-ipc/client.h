#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "varlink/frame_reader.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace btfd::varlink {

/// What the service answered.
struct Reply {
  /// Name of the error, as "io.btfd.LoadFailed"; empty for success.
  std::string error;
  /// The results, or the error's fields: always an object.
  nlohmann::json parameters;
  /// What came with the answer. Fields named ...FileDescriptor are indices into it.
  std::vector<UniqueFd> descriptors;
  /// Whether more answers to the same call follow.
  bool continues = false;
};

/// A blocking client: one connection, one call at a time, one thread. An `Error` means that the connection failed (and
/// is closed); what the service answers, its errors included, is a Reply.
class Client {
 public:
  /// Connects to the socket at `path`.
  static Result<Client> connect(const std::string& path);

  /// Uses a connected, blocking stream socket.
  explicit Client(UniqueFd socket) : socket_(std::move(socket)) {}

  /// Calls `method` ("interface.Method") and waits for the answer. `parameters` is an object, or null for none; the
  /// descriptors stay the caller's.
  Result<Reply> call(std::string_view method, const nlohmann::json& parameters,
                     std::span<const BorrowedFd> descriptors = {});

  /// Calls `method` with the `more` flag and gives each answer to `onReply`, until the last has come or `onReply`
  /// returns false. The latter closes the connection: Varlink has no other way to end a stream.
  Result<void> callMore(std::string_view method, const nlohmann::json& parameters,
                        const std::function<bool(Reply&)>& onReply);

  /// Calls `method` with the `more` flag. Its answers are for `next`, which is to be called whenever the socket is
  /// readable; no other call may be made until the last has come.
  Result<void> startMore(std::string_view method, const nlohmann::json& parameters);

  /// Waits for the next answer to what startMore called.
  Result<Reply> next() { return receive(); }

  /// Calls `method` without wanting an answer.
  Result<void> callOneway(std::string_view method, const nlohmann::json& parameters,
                          std::span<const BorrowedFd> descriptors = {});

  /// Gives up (ETIMEDOUT) when the service takes longer than `timeout` for an answer, or for the next one of a stream.
  /// 0, the default, waits forever.
  Result<void> setTimeout(std::chrono::milliseconds timeout);

  [[nodiscard]] bool connected() const { return static_cast<bool>(socket_); }

  /// The connection's socket, for poll(2) between calls: it becomes readable when the service closes the connection.
  [[nodiscard]] BorrowedFd socket() const { return socket_; }

 private:
  Result<void> send(std::string_view method, const nlohmann::json& parameters, std::span<const BorrowedFd> descriptors,
                    const char* flag);
  Result<Reply> receive();
  std::unexpected<Error> disconnect(Error error);

  UniqueFd socket_;
  FrameReader reader_;
};

} // namespace btfd::varlink
