#include "varlink/peer.h"

#include <algorithm>
#include <cerrno>

#include <sys/socket.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 // Linux 6.5; the same on all architectures but parisc and sparc.
#endif

namespace btfd::varlink {

namespace {

Result<std::vector<gid_t>> readGroups(BorrowedFd socket) {
  std::vector<gid_t> groups(32);
  for (;;) {
    auto size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) == 0) {
      groups.resize(size / sizeof(gid_t));
      groups.shrink_to_fit(); // One such list a connection, most of them short.
      return groups;
    }
    if (errno != ERANGE) {
      return failErrno("read the peer's groups", errno);
    }
    groups.resize(size / sizeof(gid_t)); // The kernel says how much it needs.
  }
}

} // namespace

bool Peer::isMemberOf(gid_t group) const {
  return gid == group || std::ranges::find(groups, group) != groups.end();
}

Result<Peer> readPeer(BorrowedFd socket, std::uint64_t connection) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return failErrno("read the peer's credentials", errno);
  }
  auto groups = readGroups(socket);
  if (!groups) {
    return std::unexpected(std::move(groups.error()));
  }
  return Peer{credentials.pid, credentials.uid, credentials.gid, std::move(*groups), connection};
}

Result<UniqueFd> peerProcess(BorrowedFd socket) {
  int pidfd = -1;
  socklen_t size = sizeof pidfd;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) != 0) {
    return failErrno("open the peer's process", errno);
  }
  return UniqueFd(pidfd);
}

} // namespace btfd::varlink
