#pragma once

#include <cstdint>
#include <expected>

namespace btfd::core {

/// Why a relocation was not resolved. A number, so that no text is built for what nobody reads: explain.h has the
/// words.
enum class Fault : std::uint8_t {
  none,

  // The kernel lacks something: the instruction is poisoned.
  noCandidate,
  noMatch,
  loadSizeChanged,

  // The record, or what it refers to in the object's BTF, makes no sense.
  unknownKind,
  unknownType,
  anonymousRoot,
  accessMalformed,
  accessTooLong,
  accessOutOfRange,
  accessIntoScalar,
  accessNotZero,
  notAnEnum,
  kindNeedsNamedField,

  // The types, of the object or of the kernel, do not bear what is asked of them.
  modifierChain,
  nestedTooDeep,
  sizeUnknown,
  sizeOverflow,
  offsetOverflow,
  bitfieldOfOddType,
  bitfieldTooWide,
  tooMuchWork,

  // Several types of the kernel have the name, and no choice between them is safe.
  ambiguousValue,
  ambiguousLoadSize,
  contradictoryCandidates,

  // The instruction is not one that such a relocation can stand at.
  sectionMissing,
  instructionOutside,
  instructionMisaligned,
  instructionKind,
  instructionValue,
  instructionLoadSize,
  wideLoadForm,
  offsetTooLarge,
  immediateTooLarge,
  newLoadSize,
};

/// The outcome of a step of a relocation.
template <typename T>
using Expected = std::expected<T, Fault>;

} // namespace btfd::core
