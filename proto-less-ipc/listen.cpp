#include "varlink/listen.h"

#include "varlink/socket_address.h"

#include <cerrno>

#include <sys/stat.h>
#include <unistd.h>

namespace btfd::varlink {

namespace {

/// Connections that may wait to be accepted; the kernel lowers it to net.core.somaxconn.
constexpr int kBacklog = 4096;

Result<UniqueFd> newSocket() {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    return failErrno("create a socket", errno);
  }
  return socket;
}

/// Removes the socket at `path` if nobody listens on it.
Result<void> removeStale(const std::string& path, const SocketAddress& address) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) {
    return failErrno(path, errno);
  }
  if (!S_ISSOCK(status.st_mode)) {
    return fail(path + " exists and is not a socket: choose another path or remove it", EADDRINUSE);
  }
  auto probe = newSocket();
  if (!probe) {
    return std::unexpected(std::move(probe.error()));
  }
  // A full backlog gives EAGAIN: then, too, there is somebody.
  if (::connect(probe->get(), address.generic(), address.size()) == 0 || errno != ECONNREFUSED) {
    return fail(path + " is in use by another process", EADDRINUSE);
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return failErrno("remove the stale socket " + path, errno);
  }
  return {};
}

} // namespace

Result<UniqueFd> listenAt(const std::string& path, mode_t mode, std::optional<gid_t> group) {
  const auto address = SocketAddress::of(path);
  if (!address) {
    return std::unexpected(address.error());
  }
  auto socket = newSocket();
  if (!socket) {
    return socket;
  }
  // The file gets the mode that the socket has when it is bound (unix_bind in the kernel's net/unix/af_unix.c).
  if (::fchmod(socket->get(), S_IRUSR | S_IWUSR) != 0) {
    return failErrno("restrict the socket for " + path, errno);
  }
  int bound = ::bind(socket->get(), address->generic(), address->size());
  if (bound != 0 && errno == EADDRINUSE) {
    if (auto removed = removeStale(path, *address); !removed) {
      return std::unexpected(std::move(removed.error()));
    }
    bound = ::bind(socket->get(), address->generic(), address->size());
  }
  if (bound != 0) {
    return failErrno("bind " + path, errno);
  }
  if (group && ::lchown(path.c_str(), static_cast<uid_t>(-1), *group) != 0) {
    return failErrno("give " + path + " to group " + std::to_string(*group), errno);
  }
  if (::chmod(path.c_str(), mode) != 0) {
    return failErrno("set the mode of " + path, errno);
  }
  if (::listen(socket->get(), kBacklog) != 0) {
    return failErrno("listen on " + path, errno);
  }
  return socket;
}

} // namespace btfd::varlink
