#include "daemon_session.h"

#include "statistics.h"

#include <array>
#include <cerrno>
#include <utility>

#include <sys/socket.h>
#include <sys/un.h>

namespace btfd::bench {

namespace {

/// Connects here, not with Client::connect, as only the socket tells who listens.
Result<UniqueFd> connectSocket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return fail("the path of the socket is too long: " + path);
  }
  path.copy(address.sun_path, path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return failErrno("cannot connect to the daemon at " + path, errno);
  }
  return socket;
}

double millisecondsIn(const nlohmann::json& spec, const char* microseconds) {
  constexpr double kMicrosecondsPerMillisecond = 1000;
  return spec.value(microseconds, 0.0) / kMicrosecondsPerMillisecond;
}

} // namespace

Result<DaemonSession> DaemonSession::connect(const std::string& path) {
  auto socket = connectSocket(path);
  if (!socket) {
    return std::unexpected(std::move(socket.error()));
  }
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(socket->get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return failErrno("SO_PEERCRED", errno);
  }
  return DaemonSession(varlink::Client(std::move(*socket)), credentials.pid);
}

Result<nlohmann::json> DaemonSession::call(std::string_view method, const nlohmann::json& parameters,
                                           std::span<const BorrowedFd> descriptors) {
  auto reply = client_.call(method, parameters, descriptors);
  if (!reply) {
    return std::unexpected(std::move(reply.error()).within(method));
  }
  if (!reply->error.empty()) {
    return fail(std::string(method) + ": " + reply->error + ": " +
                reply->parameters.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return std::move(reply->parameters);
}

Result<DaemonLoad> DaemonSession::loadAndUnload(BorrowedFd object) {
  const std::array<BorrowedFd, 1> descriptors{object};
  DaemonLoad result;
  const auto start = Clock::now();
  const auto loaded = call("io.btfd.Load", {{"objectFileDescriptor", 0}, {"name", "btfd-bench"}}, descriptors);
  result.loadMs = millisecondsSince(start);
  if (!loaded) {
    return std::unexpected(loaded.error());
  }
  const auto id = loaded->find("object");
  if (id == loaded->end() || !id->is_object() || !id->contains("id")) {
    return fail("io.btfd.Load: the answer has no object with an id");
  }
  const auto unloaded = call("io.btfd.Unload", {{"objectId", (*id)["id"]}});
  result.loadAndUnloadMs = millisecondsSince(start);
  if (!unloaded) {
    return std::unexpected(unloaded.error());
  }
  return result;
}

Result<double> DaemonSession::ping() {
  const auto start = Clock::now();
  const auto answer = call("io.systemd.service.Ping", nullptr);
  const double duration = millisecondsSince(start);
  if (!answer) {
    return std::unexpected(answer.error());
  }
  return duration;
}

Result<std::optional<SpecNumbers>> DaemonSession::describeSpec() {
  const auto answer = call("io.btfd.DescribeKernel", nullptr);
  if (!answer) {
    return std::unexpected(answer.error());
  }
  const auto spec = answer->find("spec");
  if (spec == answer->end() || !spec->is_object()) {
    return std::nullopt;
  }
  return SpecNumbers{.parseMs = millisecondsIn(*spec, "parseUSec"),
                     .indexMs = millisecondsIn(*spec, "indexUSec"),
                     .privateBytes = spec->value("privateBytes", std::uint64_t{0})};
}

Result<std::string> DaemonSession::version() {
  const auto answer = call("org.varlink.service.GetInfo", nullptr);
  if (!answer) {
    return std::unexpected(answer.error());
  }
  return answer->value("version", std::string("unknown"));
}

} // namespace btfd::bench
