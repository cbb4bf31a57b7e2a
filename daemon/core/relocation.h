#pragma once

#include "fault.h"
#include "types.h"

#include <cstdint>

namespace btfd::core {

/// What a relocation asks (enum bpf_core_relo_kind of uapi/linux/bpf.h, whose numbers these are).
enum class Kind : std::uint32_t {
  fieldByteOffset = 0,
  fieldByteSize = 1,
  fieldExists = 2,
  fieldSigned = 3,
  fieldLeftShift = 4,
  fieldRightShift = 5,
  typeIdLocal = 6,
  typeIdTarget = 7,
  typeExists = 8,
  typeSize = 9,
  enumeratorExists = 10,
  enumeratorValue = 11,
  typeMatches = 12,
};

constexpr bool isFieldKind(Kind kind) {
  return kind <= Kind::fieldRightShift;
}

constexpr bool isTypeKind(Kind kind) {
  return (kind >= Kind::typeIdLocal && kind <= Kind::typeSize) || kind == Kind::typeMatches;
}

constexpr bool isEnumeratorKind(Kind kind) {
  return kind == Kind::enumeratorExists || kind == Kind::enumeratorValue;
}

/// Whether the answer "no" is as good as any.
constexpr bool isQuestion(Kind kind) {
  return kind == Kind::fieldExists || kind == Kind::typeExists || kind == Kind::enumeratorExists ||
         kind == Kind::typeMatches;
}

/// One record of .BTF.ext: struct bpf_core_relo, and the section it is for.
struct Record {
  /// Index into Records::sections.
  std::uint32_t section = 0;
  /// In bytes, from the section's beginning.
  std::uint32_t instructionOffset = 0;
  TypeId type = 0;
  /// Offset of the access string in the BTF's strings.
  std::uint32_t access = 0;
  Kind kind = Kind::fieldByteOffset;
};

enum class Outcome : std::uint8_t {
  /// The instruction has its value.
  resolved,
  /// The kernel lacks it: the instruction was replaced by one that no verifier lets pass, as libbpf does, so that code
  /// that is never reached does not keep the rest from being loaded.
  poisoned,
  /// The relocation or what it is about is broken: a program with it must not be loaded.
  failed,
};

/// A type of the kernel.
struct TargetType {
  /// Index into Targets.
  std::uint32_t target = 0;
  TypeId id = 0;
};

/// What became of one record. Explained by explain.h.
struct Relocation {
  Record record;
  Outcome outcome = Outcome::failed;
  Fault fault = Fault::none;
  /// How many types of the kernel were looked at.
  std::uint32_t candidates = 0;
  /// The value that the object was compiled with, and the one that it has now.
  std::uint64_t localValue = 0;
  std::uint64_t value = 0;
  /// The type that gave the value; its id is 0 if none did.
  TargetType type;
  /// For what is ambiguous: the type that contradicts `type`.
  TargetType other;
};

} // namespace btfd::core
