#pragma once

#include "base/error.h"
#include "check/object_to_check.h"
#include "check/report.h"
#include "check/target_kernel.h"

#include <cstddef>
#include <span>
#include <vector>

namespace btfd::offline {

/// The least BTF of a kernel with which the CO-RE relocations of some objects come to the same as with all of it.
struct MinimizedBtf {
  std::vector<std::byte> btf;
  std::size_t types = 0;
  /// How many of them are there only so that others keep their ids, for which objects ask.
  std::size_t fillers = 0;

  /// What becomes of the relocations of each object.
  struct Outcome {
    /// With it as with the kernel's own BTF.
    check::RelocationCounts counts;
    /// Why the object does not load on this kernel, as far as relocations and byte order go: the same findings that a
    /// check has.
    std::vector<check::Finding> refused;
  };

  std::vector<Outcome> objects;
};

/// Makes it for `objects`; types of modules that they use are among the kernel's. What the kernel lacks, it lacks too.
/// That the relocations come to the same has been tried; an error if they do not.
Result<MinimizedBtf> minimizeBtf(std::span<const check::ObjectToCheck> objects, const check::TargetKernel& kernel);

} // namespace btfd::offline
