#include "kernel_names.h"

#include "base/near_misses.h"
#include "core/kernel_names.h"
#include "object/sought_type.h"
#include "seam.h"

#include <algorithm>

namespace btfd::loader {

std::string tracepointsLike(std::string_view name) {
  return kernelNamesLike(name, object::kTracepointType.prefix, object::kTracepointType.kind);
}

bool kernelHas(std::string_view name, unsigned kind) {
  const LentSpec lent = kernelSpec();
  if (lent.spec == nullptr || core::findNamed(core::Targets(*lent.spec), name, kind)) {
    return true;
  }
  // Nobody knows what a module has whose BTF was left out.
  return std::ranges::any_of(lent.spec->modules(), [](const btf::ModuleBtf& module) { return module.btf == nullptr; });
}

std::string kernelNamesLike(std::string_view name, std::string_view prefix, unsigned kind) {
  const LentSpec lent = kernelSpec();
  if (lent.spec == nullptr) {
    return {};
  }
  const core::Targets kernel(*lent.spec);
  return didYouMean(core::NearNames(kernel).to(name, kind, prefix));
}

} // namespace btfd::loader
