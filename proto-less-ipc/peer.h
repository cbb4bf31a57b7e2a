#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <cstdint>
#include <vector>

#include <sys/types.h>

namespace btfd::varlink {

/// Who is at the other end of a connection, as the kernel recorded it when the peer connected.
struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  /// Supplementary groups.
  std::vector<gid_t> groups;
  /// Counts up with each connection of a server: never used twice, unlike a pid.
  std::uint64_t connection = 0;

  /// Whether the peer is in `group`, by primary or supplementary group.
  [[nodiscard]] bool isMemberOf(gid_t group) const;
};

/// Reads the peer of a connected AF_UNIX socket.
Result<Peer> readPeer(BorrowedFd socket, std::uint64_t connection);

/// A pidfd of the peer's process (Linux 6.5 and later, else ENOPROTOOPT). It cannot be another process that got the
/// same pid, whenever this is called: the socket itself remembers the process.
Result<UniqueFd> peerProcess(BorrowedFd socket);

} // namespace btfd::varlink
