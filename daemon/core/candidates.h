#pragma once

#include "btf/kernel_spec.h"
#include "relocation.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace btfd::core {

/// One BTF that relocations are resolved against, with its index of names.
struct Target {
  Types types;
  const btf::NameIndex* index = nullptr;
  /// "vmlinux", or the module's name.
  std::string_view name;
};

/// A kernel: its own BTF first, then what modules add to it. Refers to the BTFs and indexes, which must outlive it.
class Targets {
 public:
  /// A kernel of which nothing is known: only relocations that ask nothing of it can be resolved.
  Targets() = default;

  explicit Targets(const btf::KernelSpec& spec);

  /// `kernel` and `index`, without modules.
  Targets(const struct ::btf& kernel, const btf::NameIndex& index);

  /// Adds what a module called `name` adds to the kernel's types.
  void addModule(const struct ::btf& module, const btf::NameIndex& index, std::string_view name);

  /// The same kernel, for which is noted in `usages`, one for each target, what is looked at.
  [[nodiscard]] Targets notedIn(std::span<Usage> usages) const;

  [[nodiscard]] const Target& operator[](std::uint32_t index) const { return targets_[index]; }

  [[nodiscard]] std::size_t size() const { return targets_.size(); }

  /// The types that `local`, a type of `object`, may stand for: those with its essential name and kind. Only where the
  /// kernel itself has none, modules are asked. Paid for with `work`; false once that is used up.
  [[nodiscard]] bool findCandidates(const Types& object, TypeId local, Work& work,
                                    std::vector<TargetType>& candidates) const;

 private:
  void findIn(std::uint32_t target, const struct btf_type& local, std::string_view name,
              std::vector<TargetType>& candidates) const;

  std::vector<Target> targets_;
};

} // namespace btfd::core
