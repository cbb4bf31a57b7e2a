#pragma once

#include "check/object_to_check.h"
#include "check/report.h"
#include "check/target_kernel.h"
#include "kernel_btf_needs.h"

#include <cstddef>
#include <expected>
#include <vector>

namespace btfd::offline {

/// An object whose CO-RE relocations have been applied for one kernel, so that no loader needs that kernel's BTF for
/// them. All else is as it was, byte for byte.
struct RelocatedObject {
  std::vector<std::byte> image;
  check::RelocationCounts counts;
  /// What the kernel lacks, so that the instruction is poisoned, as libbpf does it: the verifier refuses code that gets
  /// there. A relocation that failed in a program that is not loaded unless it is asked for is poisoned, too.
  std::vector<check::Finding> poisoned;
  /// What the object still needs kernel BTF for.
  std::vector<KernelBtfNeed> needs;
};

/// Why an object cannot be relocated for a kernel: the same findings that a check has. There is one at least.
using Refusal = std::vector<check::Finding>;

/// Applies the CO-RE relocations of `object` for `kernel`.
std::expected<RelocatedObject, Refusal> relocateObject(const check::ObjectToCheck& object,
                                                       const check::TargetKernel& kernel);

} // namespace btfd::offline
