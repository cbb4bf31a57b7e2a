#include "candidates.h"

namespace btfd::core {

Targets::Targets(const btf::KernelSpec& spec) : Targets(spec.vmlinux(), spec.index()) {
  for (const btf::ModuleBtf& module : spec.modules()) {
    if (module.btf) {
      // A split BTF's pointers are as large as its base's.
      targets_.push_back({.types = Types(*module.btf, targets_.front().types.pointerSize()),
                          .index = &module.index,
                          .name = module.name});
    }
  }
}

Targets::Targets(const struct ::btf& kernel, const btf::NameIndex& index) {
  targets_.push_back({.types = Types::ofKernel(kernel), .index = &index, .name = "vmlinux"});
}

void Targets::findCandidates(const Types& object, TypeId local, std::vector<TargetType>& candidates) const {
  candidates.clear();
  const struct btf_type& type = *object.find(local);
  const std::string_view name = btf::essentialName(object.string(type.name_off));
  for (std::uint32_t target = 0; target < targets_.size(); ++target) {
    findIn(target, type, name, candidates);
    if (target == 0 && !candidates.empty()) {
      return;
    }
  }
}

void Targets::findIn(std::uint32_t target, const struct btf_type& local, std::string_view name,
                     std::vector<TargetType>& candidates) const {
  targets_[target].index->forEach(name, [&](TypeId id) {
    if (sameKind(local, *targets_[target].types.find(id))) {
      candidates.push_back({.target = target, .id = id});
    }
    return true;
  });
}

} // namespace btfd::core
