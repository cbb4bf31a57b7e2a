#include "kernel_names.h"

#include "base/near_misses.h"

namespace btfd::core {

std::optional<TargetType> findNamed(const Targets& kernel, std::string_view name, std::uint32_t kind,
                                    std::string_view module) {
  for (std::uint32_t target = 0; target < kernel.size(); ++target) {
    if (!module.empty() && kernel[target].name != module) {
      continue;
    }
    if (const auto id = kernel[target].index->find(name, kind)) {
      return TargetType{.target = target, .id = *id};
    }
  }
  return std::nullopt;
}

std::vector<std::string> namesLike(const Targets& kernel, std::string_view name, std::uint32_t kind,
                                   std::string_view prefix) {
  std::vector<std::string_view> names;
  TypeId first = 1;
  for (std::uint32_t target = 0; target < kernel.size(); ++target) {
    const Types& types = kernel[target].types;
    for (TypeId id = first; id < types.count(); ++id) {
      const struct btf_type& type = *types.find(id);
      const std::string_view known = btf_kind(&type) == kind ? types.string(type.name_off) : "";
      if (known.size() > prefix.size() && known.starts_with(prefix)) {
        names.push_back(known.substr(prefix.size()));
      }
    }
    first = kernel[0].types.count(); // a split BTF goes on where its base ends
  }
  return nearMisses(name, names);
}

} // namespace btfd::core
