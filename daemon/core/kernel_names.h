#pragma once

#include "candidates.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace btfd::core {

// What a kernel has by name, apart from CO-RE's own questions: functions, tracepoints and the like.

/// The type of `kernel` with BTF kind `kind` and all of the name `name`: the kernel's own, else a module's. `module`:
/// only that of this module ("vmlinux" for the kernel itself), as "module:function" in a section's name asks for it.
std::optional<TargetType> findNamed(const Targets& kernel, std::string_view name, std::uint32_t kind,
                                    std::string_view module = {});

/// Whether a name of BTF kind `kind` fits `pattern`, in which * stands for any characters and ? for one.
bool anyMatches(const Targets& kernel, std::string_view pattern, std::uint32_t kind);

/// Names of BTF kind `kind` that begin with `prefix` and go on nearly as `name`, without that prefix; three at most.
/// Goes through all types: some 10 ms.
std::vector<std::string> namesLike(const Targets& kernel, std::string_view name, std::uint32_t kind,
                                   std::string_view prefix = {});

} // namespace btfd::core
