#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "varlink/client.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace btfd::bench {

/// One load by the daemon, in milliseconds as the client sees them.
struct DaemonLoad {
  double loadMs = 0;
  double loadAndUnloadMs = 0;
};

/// What the daemon says of its resident BTF.
struct SpecNumbers {
  double parseMs = 0;
  double indexMs = 0;
  std::uint64_t privateBytes = 0;
};

/// A client's connection to a daemon.
class DaemonSession {
 public:
  static Result<DaemonSession> connect(const std::string& socket);

  /// Loads the object file in `object` and unloads it.
  Result<DaemonLoad> loadAndUnload(BorrowedFd object);

  /// One call that does nothing but answer; milliseconds.
  Result<double> ping();

  /// Nothing if the daemon has no kernel BTF resident.
  Result<std::optional<SpecNumbers>> describeSpec();

  /// The daemon's version, as it says itself.
  Result<std::string> version();

  /// The process that listens on the socket.
  [[nodiscard]] pid_t peer() const { return peer_; }

 private:
  DaemonSession(varlink::Client client, pid_t peer) : client_(std::move(client)), peer_(peer) {}

  Result<nlohmann::json> call(std::string_view method, const nlohmann::json& parameters,
                              std::span<const BorrowedFd> descriptors = {});

  varlink::Client client_;
  pid_t peer_;
};

} // namespace btfd::bench
