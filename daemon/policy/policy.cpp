#include "policy.h"

#include <array>
#include <cerrno>
#include <utility>

#include <grp.h>
#include <unistd.h>

namespace btfd::policy {

Policy::Policy(std::optional<gid_t> group, std::string groupName)
    : group_(group), groupName_(std::move(groupName)), ownUser_(::geteuid()) {}

bool Policy::mayConnect(const varlink::Peer& peer) const {
  return peer.uid == 0 || peer.uid == ownUser_ || (group_ && peer.isMemberOf(*group_));
}

std::string Policy::whoMayConnect() const {
  std::string who = "only root";
  if (ownUser_ != 0) {
    who += (group_ ? ", user " : " and user ") + std::to_string(ownUser_) + ", as whom the daemon runs,";
  }
  if (group_) {
    who += " and members of group " + (groupName_.empty() ? std::to_string(*group_) : "'" + groupName_ + "'");
  }
  return who + " may use this daemon";
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
