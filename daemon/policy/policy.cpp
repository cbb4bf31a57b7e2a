#include "policy.h"

#include <array>
#include <cerrno>

#include <grp.h>
#include <unistd.h>

namespace btfd::policy {

Policy::Policy(std::optional<gid_t> group) : group_(group), ownUser_(::geteuid()) {}

bool Policy::mayConnect(const varlink::Peer& peer) const {
  return peer.uid == 0 || peer.uid == ownUser_ || (group_ && peer.isMemberOf(*group_));
}

bool Policy::mayChange(const varlink::Peer& peer, uid_t owner) const {
  return peer.uid == 0 || peer.uid == owner;
}

Result<std::optional<gid_t>> findGroup(const std::string& name) {
  std::array<char, std::size_t{64} * 1024> buffer{}; // a group may have many members; more than this is ERANGE
  struct group entry{};
  struct group* found = nullptr;
  if (const int error = ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found); error != 0) {
    return failErrno("cannot look up group " + name, error);
  }
  return found == nullptr ? std::nullopt : std::optional(found->gr_gid);
}

} // namespace btfd::policy
