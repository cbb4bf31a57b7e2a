#pragma once

#include "base/error.h"
#include "btf/handle.h"
#include "btf/name_index.h"
#include "btf/parse_btf.h"
#include "btf_file.h"
#include "core/candidates.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace btfd::check {

/// One of the kernel's enums that number what bpf(2) knows, such as enum bpf_func_id.
struct KernelEnum {
  /// Whether the kernel's BTF has it as a whole; without it nothing can be said. Where only those values are left that
  /// some objects ask for (btfctl btf minimize), neither the count nor the value for "unspecified" is among them.
  bool known = false;
  /// Values and names, but for the one that only counts the others.
  std::map<std::uint64_t, std::string_view> names;

  [[nodiscard]] bool has(std::uint64_t value) const { return names.contains(value); }
};

/// A kernel that objects are checked against: its BTF and that of its modules, indexed. It is not changed any more once
/// it is shared, so any number of threads may read it.
class TargetKernel {
 public:
  /// A kernel of which nothing but `btf` is known. `name` is what it is called in reports.
  static Result<std::unique_ptr<TargetKernel>> make(std::string name, const BtfBytes& btf);

  /// The kernel that `spec`, which must outlive it, is of.
  static std::unique_ptr<TargetKernel> of(std::string name, const btf::KernelSpec& spec);

  /// Adds the split BTF of the module called `name`.
  Result<void> addModule(std::string name, const BtfBytes& btf);

  [[nodiscard]] const std::string& name() const { return name_; }

  [[nodiscard]] const core::Targets& targets() const { return targets_; }

  [[nodiscard]] bool isBigEndian() const { return targets_[0].types.isBigEndian(); }

  /// Whether its BTF is that of a whole kernel. If not, it is only what CO-RE relocations of some objects need of one,
  /// so that nothing is known of all else.
  [[nodiscard]] bool isWhole() const { return isWhole_; }

  [[nodiscard]] const KernelEnum& helpers() const { return helpers_; }

  [[nodiscard]] const KernelEnum& mapTypes() const { return mapTypes_; }

  [[nodiscard]] const KernelEnum& programTypes() const { return programTypes_; }

  [[nodiscard]] const KernelEnum& attachTypes() const { return attachTypes_; }

 private:
  struct Module {
    std::string name;
    btf::BtfHandle btf;
    btf::NameIndex index;
  };

  explicit TargetKernel(std::string name) : name_(std::move(name)) {}

  void readEnums();
  void findOutIfWhole();
  [[nodiscard]] KernelEnum readEnum(const char* name) const;

  std::string name_;
  /// Nothing for one of a KernelSpec.
  btf::BtfHandle btf_;
  btf::KindLayouts layouts_;
  btf::NameIndex index_;
  /// At addresses that stay, for targets_. After btf_, so that split BTFs go before their base.
  std::vector<std::unique_ptr<Module>> modules_;
  core::Targets targets_;
  KernelEnum helpers_;
  KernelEnum mapTypes_;
  KernelEnum programTypes_;
  KernelEnum attachTypes_;
  bool isWhole_ = true;
};

} // namespace btfd::check
