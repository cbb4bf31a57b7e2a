#pragma once

#include "object_to_check.h"
#include "report.h"
#include "target_kernel.h"

#include <cstddef>
#include <limits>

namespace btfd::check {

/// How much is wanted.
struct CheckOptions {
  /// Records of all relocations, not only of those that came to nothing.
  bool allRelocations = false;
  /// The most findings of a report, and the most records of relocations; of more findings the heaviest are kept.
  std::size_t most = std::numeric_limits<std::size_t>::max();
};

/// Whether `object` loads on `kernel`, as far as BTF tells: its CO-RE relocations, and whether the kernel has the
/// program, map and attach types, helpers, attach targets, functions and symbols that it uses. Nothing is asked of the
/// running kernel. What no BTF tells is left out: what the verifier thinks of the code, what may be attached where,
/// limits.
Report checkObject(const ObjectToCheck& object, const TargetKernel& kernel, const CheckOptions& options = {});

} // namespace btfd::check
