#include "candidates.h"

namespace btfd::core {

namespace {

/// What it costs to compare with one name of an index: several steps, as the names lie far apart in memory.
constexpr std::uint64_t kComparison = 8;

} // namespace

Targets::Targets(const btf::KernelSpec& spec) : Targets(spec.vmlinux(), spec.index()) {
  for (const btf::ModuleBtf& module : spec.modules()) {
    if (module.btf) {
      addModule(*module.btf, module.index, module.name);
    }
  }
}

Targets::Targets(const struct ::btf& kernel, const btf::NameIndex& index) {
  targets_.push_back({.types = Types::ofKernel(kernel), .index = &index, .name = "vmlinux"});
}

void Targets::addModule(const struct ::btf& module, const btf::NameIndex& index, std::string_view name) {
  // A split BTF's pointers are as large as its base's.
  targets_.push_back({.types = Types(module, targets_.front().types.pointerSize()), .index = &index, .name = name});
}

Targets Targets::notedIn(std::span<Usage> usages) const {
  Targets targets = *this;
  for (std::size_t target = 0; target < targets.size(); ++target) {
    targets.targets_[target].types = targets.targets_[target].types.notedIn(usages[target]);
  }
  return targets;
}

bool Targets::findCandidates(const Types& object, TypeId local, Work& work, std::vector<TargetType>& candidates) const {
  candidates.clear();
  const struct btf_type& type = *object.find(local);
  const std::string_view fullName = object.string(type.name_off);
  if (!object.payForNames(fullName.size())) {
    return false;
  }
  const std::string_view name = btf::essentialName(fullName);
  for (std::uint32_t target = 0; target < targets_.size(); ++target) {
    if (!work.spend(targets_[target].index->compared(name) * kComparison + 1)) {
      return false;
    }
    findIn(target, type, name, candidates);
    if (target == 0 && !candidates.empty()) {
      return true;
    }
  }
  return true;
}

void Targets::findIn(std::uint32_t target, const struct btf_type& local, std::string_view name,
                     std::vector<TargetType>& candidates) const {
  targets_[target].index->forEach(name, [&](TypeId id) {
    if (sameKind(local, *targets_[target].types.find(id))) {
      targets_[target].types.useAsCandidate(id);
      candidates.push_back({.target = target, .id = id});
    }
    return true;
  });
}

} // namespace btfd::core
