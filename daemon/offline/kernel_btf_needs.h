#pragma once

#include "check/object_to_check.h"

#include <string>
#include <vector>

namespace btfd::offline {

/// Something in an object, apart from CO-RE relocations, for which libbpf reads the BTF of the kernel that it loads the
/// object into.
struct KernelBtfNeed {
  /// The program, map, function or variable.
  std::string name;
  /// What it and others like it are, for people: "variables of the kernel that it reads".
  std::string reason;
};

/// What `object` needs kernel BTF for, as libbpf decides it (obj_needs_vmlinux_btf) where nobody asks for programs in
/// sections "?...", and gives no program another one to attach to.
std::vector<KernelBtfNeed> kernelBtfNeeds(const check::ObjectToCheck& object);

} // namespace btfd::offline
