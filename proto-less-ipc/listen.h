#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <optional>
#include <string>

#include <sys/types.h>

namespace btfd::varlink {

/// Binds a stream socket to `path` and listens. It has `mode` (as in 0660), and group `group` if given, before anybody
/// can connect. A socket that was left there by a process that is gone is replaced; one that somebody listens on, or a
/// file of another kind, is an error (EADDRINUSE).
Result<UniqueFd> listenAt(const std::string& path, mode_t mode, std::optional<gid_t> group = std::nullopt);

} // namespace btfd::varlink
