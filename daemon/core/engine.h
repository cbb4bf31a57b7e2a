#pragma once

#include "candidates.h"
#include "patch.h"
#include "records.h"

#include <cstddef>
#include <span>
#include <vector>

namespace btfd::core {

/// Resolves `records` of an object with `types` against `targets`, and patches the instructions in `sections`: the
/// bytes of each of Records::sections, or none where the object has no such section.
///
/// One Relocation for each record, in their order. Whether a failed one keeps the object from being loaded is for the
/// caller to say: it does not if its instruction belongs to no program that is.
std::vector<Relocation> relocate(const Types& types, const Records& records,
                                 std::span<const std::span<std::byte>> sections, const Targets& targets);

} // namespace btfd::core
