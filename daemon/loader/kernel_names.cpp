#include "kernel_names.h"

#include "base/near_misses.h"
#include "seam.h"

#include <bpf/btf.h>

#include <cstdint>
#include <vector>

namespace btfd::loader {

namespace {

constexpr std::string_view kTracepointPrefix = "btf_trace_";

/// Adds to `names` those of the types of `btf` from id `first` on.
void addNames(const struct btf& btf, std::uint32_t first, std::string_view prefix, unsigned kind,
              std::vector<std::string_view>& names) {
  const std::uint32_t end = btf__type_cnt(&btf);
  for (std::uint32_t id = first; id < end; ++id) {
    const struct btf_type* type = btf__type_by_id(&btf, id);
    if (btf_kind(type) != kind) {
      continue;
    }
    const std::string_view name = btf__name_by_offset(&btf, type->name_off);
    if (name.starts_with(prefix)) {
      names.push_back(name.substr(prefix.size()));
    }
  }
}

} // namespace

std::string tracepointsLike(std::string_view name) {
  return kernelNamesLike(name, kTracepointPrefix, BTF_KIND_TYPEDEF);
}

bool kernelHas(std::string_view name, unsigned kind) {
  const LentSpec lent = kernelSpec();
  if (lent.spec == nullptr || lent.spec->index().find(name, kind)) {
    return true;
  }
  for (const btf::ModuleBtf& module : lent.spec->modules()) {
    if (module.btf == nullptr || module.index.find(name, kind)) {
      return true; // nobody knows what a module has whose BTF was left out
    }
  }
  return false;
}

std::string kernelNamesLike(std::string_view name, std::string_view prefix, unsigned kind) {
  const LentSpec lent = kernelSpec();
  if (lent.spec == nullptr) {
    return {};
  }
  std::vector<std::string_view> names;
  addNames(lent.spec->vmlinux(), 1, prefix, kind, names);
  for (const btf::ModuleBtf& module : lent.spec->modules()) {
    if (module.btf != nullptr) {
      addNames(*module.btf, btf__type_cnt(&lent.spec->vmlinux()), prefix, kind, names);
    }
  }
  return didYouMean(nearMisses(name, names));
}

} // namespace btfd::loader
