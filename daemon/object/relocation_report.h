#pragma once

#include "core/candidates.h"
#include "core/kernel_names.h"
#include "core/relocation.h"
#include "relocate_image.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace btfd::object {

/// What became of one CO-RE relocation, in words that need neither the object nor the kernel any more.
struct RelocationReport {
  /// The function that its instruction is in, and the instruction's number there.
  std::string function;
  std::uint32_t instruction = 0;
  /// "byte_off", "type_exists" and so on.
  std::string_view kind;
  /// What is asked for, as the object's source wrote it: "struct task_struct.__state".
  std::string access;
  core::Outcome outcome = core::Outcome::failed;
  /// How many of the kernel's types were looked at.
  std::uint32_t candidates = 0;
  /// If it was resolved: the value that the instruction has now, and the one that the object was compiled with.
  std::uint64_t value = 0;
  std::uint64_t localValue = 0;
  /// The type that gave the value: its name, id and the BTF that it is in; id 0 if none did.
  std::string targetType;
  core::TypeId targetTypeId = 0;
  std::string targetBtf;
  /// Why it was not resolved; empty if it was.
  std::string reason;
};

/// Describes `relocation`, one of `records` that was resolved against `targets`. `near` is for names that the kernel
/// lacks.
RelocationReport describe(const CoreRecords& records, const core::Targets& targets, const core::Relocation& relocation,
                          core::NearNames& near);

/// Where the reason is known already.
RelocationReport describe(const CoreRecords& records, const core::Targets& targets, const core::Relocation& relocation,
                          std::string reason);

/// In words: what is asked, where, and why there is no answer.
std::string sentence(const RelocationReport& report);

/// As io.btfd's type Relocation.
nlohmann::json toJson(const RelocationReport& report);

} // namespace btfd::object
