#include "kernel_btf_needs.h"

#include "object/opened_object.h"

#include <bpf/libbpf.h>

#include <linux/bpf.h>

namespace btfd::offline {

namespace {

void addPrograms(const check::ObjectToCheck& object, std::vector<KernelBtfNeed>& needs) {
  for (const struct bpf_program* program : object.programs()) {
    const enum bpf_prog_type type = bpf_program__type(program);
    if (type == BPF_PROG_TYPE_STRUCT_OPS || type == BPF_PROG_TYPE_LSM || type == BPF_PROG_TYPE_TRACING) {
      needs.push_back({.name = bpf_program__name(program), .reason = "programs whose targets are looked up there"});
    }
  }
}

void addMaps(const check::ObjectToCheck& object, std::vector<KernelBtfNeed>& needs) {
  const struct bpf_map* map = nullptr;
  while ((map = bpf_object__next_map(&object.opened(), map)) != nullptr) {
    if (object::mapType(*map) == BPF_MAP_TYPE_STRUCT_OPS) {
      needs.push_back({.name = bpf_map__name(map), .reason = "struct_ops maps"});
    }
  }
}

/// Functions, and variables that are declared with a type; those of type void are looked up in /proc/kallsyms.
void addExterns(const check::ObjectToCheck& object, std::vector<KernelBtfNeed>& needs) {
  for (const check::Extern& external : object.externs()) {
    if (external.isConfiguration) {
      continue;
    }
    if (external.isFunction) {
      needs.push_back({.name = std::string(external.name), .reason = "functions of the kernel that it calls"});
      continue;
    }
    const auto types = object.types();
    const struct btf_type* variable = types ? types->find(external.type) : nullptr;
    const auto type = variable == nullptr ? std::unexpected(core::Fault::unknownType) : types->strip(variable->type);
    if (type && type->id != 0) {
      needs.push_back({.name = std::string(external.name), .reason = "variables of the kernel that it reads"});
    }
  }
}

} // namespace

std::vector<KernelBtfNeed> kernelBtfNeeds(const check::ObjectToCheck& object) {
  std::vector<KernelBtfNeed> needs;
  addPrograms(object, needs);
  addMaps(object, needs);
  addExterns(object, needs);
  return needs;
}

} // namespace btfd::offline
