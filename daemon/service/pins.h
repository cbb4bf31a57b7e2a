#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "registry/registry.h"

#include <string>

#include <sys/types.h>

namespace btfd::service {

/// Maps that objects want pinned by name (LIBBPF_PIN_BY_NAME): objects of one owner share them, as with libbpf, but no
/// owner gets at another's, and a pin ends with the last object that uses it.
class Pins {
 public:
  /// `bpffs`: the daemon's directory on a bpffs, made if it is missing.
  explicit Pins(std::string bpffs) : bpffs_(std::move(bpffs)) {}

  /// Where the maps of `owner` are pinned. libbpf makes the last directory of the path.
  [[nodiscard]] std::string directoryOf(uid_t owner) const;

  /// Removes the pins of `owner` that no object of `registry` uses: those of an object that is gone, and those that a
  /// lost worker left. Not to be called while a load of this owner is under way.
  void sweep(uid_t owner, const registry::Registry& registry) const;

  /// Removes what an earlier daemon left.
  void sweepAll(const registry::Registry& registry) const;

  /// At the end of the daemon: removes the directory of the pins, if none is left in it.
  void removeDirectory() const;

 private:
  [[nodiscard]] std::string ownersDirectory() const { return bpffs_ + "/owners"; }

  void sweepDirectory(const std::string& directory, const registry::Registry& registry) const;

  std::string bpffs_;
};

/// Makes `bpffs` if it is missing. Error: it is no directory on a bpffs, so that nothing can be pinned.
Result<void> prepareBpffs(const std::string& bpffs);

/// Makes this process the only daemon that uses `bpffs`, until the descriptor is closed. Error code EWOULDBLOCK:
/// another one does, whose pins this one would take for leftovers.
Result<UniqueFd> lockBpffs(const std::string& bpffs);

} // namespace btfd::service
