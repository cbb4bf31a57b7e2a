#pragma once

#include "base/error.h"
#include "varlink/peer.h"

#include <optional>
#include <string>

#include <sys/types.h>

namespace btfd::policy {

/// Who may do what. Immutable, so it may be asked from any thread.
class Policy {
 public:
  /// `group`: whose members may speak to the daemon beside root and the daemon's own user; nobody else if empty.
  /// `groupName` is what it is called, for messages.
  explicit Policy(std::optional<gid_t> group, std::string groupName = {});

  /// Whether the peer may call anything at all. The socket's permissions say the same, but a descriptor can be handed
  /// on and permissions can be changed.
  [[nodiscard]] bool mayConnect(const varlink::Peer& peer) const;

  /// Who may, in words, for those who may not.
  [[nodiscard]] std::string whoMayConnect() const;

  /// Whether the peer may unload and attach an object of `owner`, and get its descriptors.
  [[nodiscard]] bool mayChange(const varlink::Peer& peer, uid_t owner) const;

 private:
  std::optional<gid_t> group_;
  std::string groupName_;
  uid_t ownUser_;
};

/// The id of group `name`, or nothing if the system has no such group. Reads the user database, which may block: for
/// start-up.
Result<std::optional<gid_t>> findGroup(const std::string& name);

} // namespace btfd::policy
