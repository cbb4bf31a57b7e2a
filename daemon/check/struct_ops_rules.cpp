#include "base/near_misses.h"
#include "base/text.h"
#include "btf/name_index.h"
#include "core/kernel_names.h"
#include "rules.h"

#include <algorithm>

#include <linux/btf.h>

namespace btfd::check {

namespace {

/// One struct_ops variable on one kernel, as libbpf's bpf_map__init_kern_struct_ops has it.
class StructOpsRules {
 public:
  StructOpsRules(const core::Types& types, const StructOps& variable, const TargetKernel& kernel, core::NearNames& near,
                 std::vector<Finding>& findings)
      : types_(types), variable_(variable), kernel_(kernel), near_(near), findings_(findings) {}

  void check() {
    const struct btf_type& local = *types_.find(variable_.type);
    name_ = btf::essentialName(types_.string(local.name_off));
    const auto found = core::findNamed(kernel_.targets(), name_, BTF_KIND_STRUCT);
    if (!found || !core::findNamed(kernel_.targets(), "bpf_struct_ops_" + std::string(name_), BTF_KIND_STRUCT)) {
      add(Severity::error, "the kernel has no struct_ops " + quotedName(name_) +
                               itHas(near_.to(name_, BTF_KIND_STRUCT, "bpf_struct_ops_")));
      return;
    }
    const core::Types& theirs = kernel_.targets()[found->target].types;
    for (std::uint32_t index = 0; index < btf_vlen(&local); ++index) {
      checkMember(local, index, theirs, *theirs.find(found->id));
    }
  }

 private:
  void add(Severity severity, std::string message) {
    collect(findings_, {.severity = severity,
                        .topic = Topic::structOps,
                        .program = {},
                        .map = std::string(variable_.variable),
                        .name = std::string(name_),
                        .message = std::move(message),
                        .relocation = {}});
  }

  void checkMember(const struct btf_type& local, std::uint32_t index, const core::Types& theirs,
                   const struct btf_type& structure) {
    const struct btf_member& member = btf_members(&local)[index];
    const std::string_view name = types_.string(member.name_off);
    const auto members = std::span(btf_members(&structure), btf_vlen(&structure));
    const auto found = std::ranges::find_if(
        members, [&](const struct btf_member& each) { return theirs.string(each.name_off) == name; });
    const std::string theirName = "the kernel's struct " + shown(name_);
    if (found == members.end()) {
      checkMissing(member, theirName + " has no " + quotedName(name));
      return;
    }
    const auto ours = types_.strip(member.type);
    const auto other = theirs.strip(found->type);
    if (!ours || !other || !core::sameKind(*ours->type, *other->type)) {
      add(Severity::error, theirName + " has " + quotedName(name) + " of another kind of type");
    } else if (!btf_is_ptr(ours->type) && types_.size(ours->id) != theirs.size(other->id)) {
      add(Severity::error, theirName + " has " + quotedName(name) + " of another size");
    }
  }

  /// What the kernel does not have may be there as long as it is not set; a program that it is set to is left out.
  void checkMissing(const struct btf_member& member, const std::string& what) {
    const std::uint64_t begin = member.offset / 8;
    const auto size = types_.size(member.type);
    const std::uint64_t end = std::min<std::uint64_t>(variable_.content.size(), begin + size.value_or(0));
    const auto isSet = [&](const object::Reference& each) {
      return each.offset >= variable_.offset + begin && each.offset < variable_.offset + end;
    };
    if (std::ranges::any_of(variable_.references, isSet)) {
      add(Severity::warning, what + ", so the program that it is set to is left out");
      return;
    }
    for (std::uint64_t at = begin; at < end; ++at) {
      if (variable_.content[at] != std::byte{0}) {
        add(Severity::error, what + ", which the object sets");
        return;
      }
    }
  }

  const core::Types& types_;
  const StructOps& variable_;
  const TargetKernel& kernel_;
  core::NearNames& near_;
  std::vector<Finding>& findings_;
  std::string_view name_;
};

} // namespace

void checkStructOps(const ObjectToCheck& object, const TargetKernel& kernel, core::NearNames& near,
                    std::vector<Finding>& findings) {
  const auto types = object.types();
  for (const StructOps& variable : object.structOps()) {
    StructOpsRules(*types, variable, kernel, near, findings).check();
  }
}

} // namespace btfd::check
