#pragma once

#include "candidates.h"
#include "kernel_names.h"
#include "relocation.h"
#include "types.h"

#include <string>
#include <string_view>

namespace btfd::core {

/// How libbpf's messages and others call the kind: "byte_off", "type_exists" and so on; "unknown" for what is none.
std::string_view kindName(Kind kind);

/// The outcome as the wire has it: "resolved", "poisoned" or "failed".
std::string_view outcomeName(Outcome outcome);

/// A type by kind and name, as C spells it: "struct task_struct", "int", "enum (anonymous)".
std::string typeName(const Types& types, TypeId id);

/// What `record` is about, as the object's source wrote it: "struct task_struct.__state", "struct file.f_path.dentry",
/// "enum bpf_func_id.BPF_FUNC_loop"; for type kinds, the type. An access string that makes no sense stands as it is.
std::string accessPath(const Types& object, const Record& record);

/// Why `relocation` was not resolved: what the kernel lacks, what it has instead and which of its names come near, or
/// what is wrong with the object. Empty if it was resolved.
///
/// `object` and `targets` are those of the relocation. Where none of the kernel's types has the name, `near` searches
/// for others.
std::string explain(const Types& object, const Targets& targets, const Relocation& relocation, NearNames& near);

} // namespace btfd::core
