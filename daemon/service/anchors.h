#pragma once

#include "load_request.h"
#include "registry/registry.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace btfd::service {

// A target says which of the programs that are there are to run before or after (io.btfd.Anchor). Links of the daemon
// it names by the daemon's ids, which only the front knows: workers are told the kernel's.

/// Puts the kernel's ids in place of the daemon's in `target`, which is at `path` of a request.
std::optional<InvalidField> resolveAnchors(nlohmann::json& target, const std::string& path,
                                           registry::Registry& registry);

/// The same for all targets of a Load.
std::optional<InvalidField> resolveAnchorsOfLoad(nlohmann::json& parameters, registry::Registry& registry);

} // namespace btfd::service
