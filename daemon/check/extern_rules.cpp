#include "base/near_misses.h"
#include "base/text.h"
#include "btf/name_index.h"
#include "core/kernel_names.h"
#include "core/type_match.h"
#include "rules.h"

#include <linux/btf.h>

namespace btfd::check {

namespace {

void say(Why* why, std::string text) {
  if (why != nullptr) {
    why->text = std::move(text);
  }
}

std::string notThere(const char* what, std::string_view name, std::uint32_t kind, core::NearNames& near) {
  return "the kernel has no " + std::string(what) + " " + quotedName(name) + itHas(near.to(name, kind));
}

/// Whether the object's type `local` and the kernel's `found` are alike, as libbpf asks it of functions and variables
/// of the kernel (bpf_object__resolve_ksym_var_btf_id and _func_btf_id).
bool fits(const core::Types& types, core::TypeId local, const core::Target& target, core::TypeId found) {
  core::Work work;
  const core::Types ours = types.paidWith(work);
  const core::Types theirs = target.types.paidWith(work);
  const auto compatible = core::TypeMatcher(ours, theirs, work).compatible(local, found);
  return compatible && *compatible;
}

} // namespace

Supplied isSupplied(const ObjectToCheck& object, const TargetKernel& kernel, const Extern& external, Why* why) {
  const auto types = object.types();
  const struct btf_type* type = types ? types->find(external.type) : nullptr;
  if (type == nullptr || !kernel.isWhole()) {
    return Supplied::unknown;
  }
  if (!external.isFunction) {
    const auto stripped = types->strip(type->type);
    if (!stripped || stripped->id == 0) {
      say(why, "the address of " + quotedName(external.name) +
                   " is looked up in the kernel's list of symbols (/proc/kallsyms), of which BTF tells nothing");
      return Supplied::unknown;
    }
  }
  const std::uint32_t kind = external.isFunction ? BTF_KIND_FUNC : BTF_KIND_VAR;
  const char* what = external.isFunction ? "function" : "variable";
  const std::string_view name = external.isFunction ? btf::essentialName(external.name) : external.name;
  const auto found = core::findNamed(kernel.targets(), name, kind);
  if (!found) {
    if (why != nullptr) {
      why->text = notThere(what, name, kind, why->near);
    }
    return Supplied::no;
  }
  const core::Target& target = kernel.targets()[found->target];
  if (!fits(*types, type->type, target, target.types.find(found->id)->type)) {
    say(why,
        "the kernel's " + std::string(what) + " " + quotedName(name) + " has another type than the object declares");
    return Supplied::no;
  }
  return Supplied::yes;
}

void checkExterns(const ObjectToCheck& object, const TargetKernel& kernel, core::NearNames& near,
                  std::vector<Finding>& findings) {
  for (const Extern& external : object.externs()) {
    if (external.isWeak || (!external.isConfiguration && !kernel.isWhole())) {
      continue;
    }
    Finding finding;
    finding.name = external.name;
    if (external.isConfiguration) {
      if (!external.name.starts_with("CONFIG_")) {
        continue; // LINUX_KERNEL_VERSION and the like: libbpf itself supplies them
      }
      finding.topic = Topic::configuration;
      finding.message =
          "it loads only where the kernel's configuration has " + finding.name + ", which BTF does not tell";
    } else {
      finding.topic = external.isFunction ? Topic::kernelFunction : Topic::kernelSymbol;
      Why why{.near = near, .text = {}};
      const Supplied supplied = isSupplied(object, kernel, external, &why);
      if (supplied == Supplied::yes) {
        continue;
      }
      finding.message = std::move(why.text);
      finding.severity = supplied == Supplied::no ? Severity::error : Severity::unknown;
    }
    collect(findings, std::move(finding));
  }
}

} // namespace btfd::check
