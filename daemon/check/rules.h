#pragma once

#include "core/kernel_names.h"
#include "object_to_check.h"
#include "reachability.h"
#include "report.h"
#include "target_kernel.h"

#include <string>
#include <string_view>
#include <vector>

namespace btfd::check {

// The rules that checkObject applies. Each adds what it finds to `findings`. `near`: for names that the kernel lacks.

/// Sections that say nothing of the type of their program.
void checkSections(const ObjectToCheck& object, std::vector<Finding>& findings);

/// Program types, attach types and, with checkTarget, attach targets.
void checkPrograms(const ObjectToCheck& object, const TargetKernel& kernel, core::NearNames& near,
                   std::vector<Finding>& findings);

/// What `program` attaches to. Classic tracepoints and kprobes are looked up by the kernel only when they are attached;
/// of those that are not in BTF it is said whether the kernel cannot have them.
void checkTarget(const struct bpf_program& program, const TargetKernel& kernel, core::NearNames& near,
                 std::vector<Finding>& findings);

/// Map types.
void checkMaps(const ObjectToCheck& object, const TargetKernel& kernel, std::vector<Finding>& findings);

/// Struct_ops: the kernel's struct, and its members that the object sets.
void checkStructOps(const ObjectToCheck& object, const TargetKernel& kernel, core::NearNames& near,
                    std::vector<Finding>& findings);

/// Helpers and missing weak functions that code which is reached calls. `image`: with relocations applied.
void checkCalls(const ObjectToCheck& object, const TargetKernel& kernel, std::span<const std::byte> image,
                const Reachability& reachability, core::NearNames& near, std::vector<Finding>& findings);

/// Functions and variables of the kernel, if it is whole, and its configuration.
void checkExterns(const ObjectToCheck& object, const TargetKernel& kernel, core::NearNames& near,
                  std::vector<Finding>& findings);

/// Why a kernel does not have something.
struct Why {
  core::NearNames& near;
  std::string text;
};

/// Whether `kernel` has what the object calls `external`, in its name and type. `why`, if it is given, gets the reason
/// why not.
Supplied isSupplied(const ObjectToCheck& object, const TargetKernel& kernel, const Extern& external,
                    Why* why = nullptr);

} // namespace btfd::check
