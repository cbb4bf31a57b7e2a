#pragma once

#include "base/unique_fd.h"
#include "policy/policy.h"
#include "registry/registry.h"
#include "varlink/call.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace btfd::service {

/// Duplicates of the programs of loaded objects that those of a Load are made for (io.btfd.ProgramTarget), by the
/// name of the new program. Nothing if the caller may not have one of them, or there is none; the call was answered
/// then.
std::optional<std::vector<std::pair<std::string, UniqueFd>>>
findTargetPrograms(varlink::Call& call, registry::Registry& registry, const policy::Policy& policy);

} // namespace btfd::service
