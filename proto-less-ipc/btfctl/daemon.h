#pragma once

#include "base/unique_fd.h"
#include "btfctl/outcome.h"
#include "varlink/client.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace btfd::btfctl {

/// A connection to the daemon. Objects that are loaded through it live as long as it does.
class Daemon {
 public:
  /// Connects to the socket at path `socket`.
  static Outcome<Daemon> connect(const std::string& socket);

  /// Calls `method` of io.btfd and gives its reply. Descriptors that come with the reply are closed.
  Outcome<nlohmann::json> call(std::string_view method, const nlohmann::json& parameters,
                               std::span<const UniqueFd> descriptors = {});

  /// Calls `method` of io.btfd and gives the only descriptor that comes with the reply.
  Outcome<UniqueFd> callForDescriptor(std::string_view method, const nlohmann::json& parameters);

  /// Calls `method` of io.btfd and gives each of its replies to `onReply`, until the daemon ends the stream.
  Outcome<void> stream(std::string_view method, const nlohmann::json& parameters,
                       const std::function<void(nlohmann::json&)>& onReply);

  /// All objects that `parameters`, those of io.btfd.List, select.
  Outcome<nlohmann::json> list(const nlohmann::json& parameters);

  /// Calls `method` of io.btfd for a stream of replies, which `next` waits for one by one: for who has other things to
  /// wait for, too. No other call can be made on this connection any more.
  Outcome<void> startStream(std::string_view method);
  Outcome<nlohmann::json> next();

  /// The connection's socket, to see by poll(2) whether the daemon is still there.
  [[nodiscard]] BorrowedFd socket() const;

 private:
  explicit Daemon(varlink::Client client) : client_(std::move(client)) {}

  varlink::Client client_;
};

/// The id of the object that `idOrName` means: digits are an id, anything else is the name of exactly one object.
Outcome<std::int64_t> findObject(Daemon& daemon, const std::string& idOrName);

/// Reads an id as the daemon gives it. `what` it is of is named in the error.
Outcome<std::int64_t> parseId(std::string_view what, std::string_view text);

} // namespace btfd::btfctl
