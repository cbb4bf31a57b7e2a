#pragma once

#include "relocation.h"

#include <array>
#include <cstdint>
#include <span>

namespace btfd::core {

/// The most steps that an access may have, in the object and in the kernel (BPF_CORE_SPEC_MAX_LEN).
inline constexpr std::uint32_t kMaximumAccessors = 64;

/// A step of an access that means something to the one who wrote it: a field with a name, an element of an array, or an
/// enumerator. Anonymous structs and unions on the way are no steps.
struct Accessor {
  /// Of a field, the struct or union; of an element, the element's type; of an enumerator, the enum.
  TypeId type = 0;
  std::uint32_t index = 0;
  /// Of a field or enumerator; null for an element.
  const char* name = nullptr;
};

/// Where an access ends.
struct Place {
  Accessor last;
  /// From the root's beginning.
  std::uint64_t bitOffset = 0;
};

/// A relocation's access string in the light of the object's types: "0:1:2" of a struct as the fields' names.
class LocalAccess {
 public:
  /// Reads `text`, which must consist of numbers and colons, for relocation `kind` of type `root`. Type kinds have no
  /// accessors.
  static Expected<LocalAccess> parse(const Types& types, TypeId root, Kind kind, const char* text);

  [[nodiscard]] std::span<const Accessor> accessors() const { return std::span(accessors_).first(length_); }

  [[nodiscard]] Place place() const { return {.last = accessors_[length_ - 1], .bitOffset = bitOffset_}; } // NOLINT

 private:
  LocalAccess() {} // NOLINT: accessors_ is filled as far as length_ says

  Expected<void> walk(const Types& types, std::span<const std::uint32_t> indexes, TypeId id);
  Expected<void> stepIntoField(const Types& types, const Stripped& at, std::uint32_t index, TypeId& next);
  Expected<void> stepIntoElement(const Types& types, const Stripped& at, std::uint32_t index, TypeId& next);

  std::uint32_t length_ = 0;
  std::uint64_t bitOffset_ = 0;
  std::array<Accessor, kMaximumAccessors> accessors_;
};

/// Whether `array`, which `field` leads to, is a flexible array: of no length, and the last member of its struct.
bool isFlexibleArray(const Types& types, const Accessor& field, const struct btf_array& array);

/// Adds `elements` times the size of type `element` to `bitOffset`; an error where 32 bits would not hold it.
Expected<void> addElements(const Types& types, TypeId element, std::uint32_t elements, std::uint64_t& bitOffset);

/// Adds `bits` to `bitOffset`; an error where 32 bits would not hold it.
Expected<void> addBits(std::uint64_t bits, std::uint64_t& bitOffset);

} // namespace btfd::core
