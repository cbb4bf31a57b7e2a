#pragma once

#include "types.h"
#include "work.h"

#include <cstdint>
#include <unordered_map>

namespace btfd::core {

/// Compares whole types of the object with those of the kernel. The roots' names and kinds have been compared already.
///
/// Remembers what it has found out about each pair of types, so that types that refer to one another in many ways take
/// no more time than there are pairs.
class TypeMatcher {
 public:
  TypeMatcher(const Types& object, const Types& target, Work& work) : object_(object), target_(target), work_(work) {}

  /// Whether the types are alike enough for bpf_core_type_exists and _size (libbpf's bpf_core_types_are_compat): of one
  /// kind; behind pointers and in arrays and function prototypes, element by element.
  Expected<bool> compatible(TypeId local, TypeId candidate);

  /// Whether the kernel's type has all that the object's has, for bpf_core_type_matches (libbpf's
  /// bpf_core_types_match).
  Expected<bool> matches(TypeId local, TypeId candidate);

 private:
  /// Two types behind their typedefs and modifiers.
  struct StrippedPair {
    Stripped ours;
    Stripped theirs;
  };

  /// A step of a comparison: the pair that is next to be compared.
  Expected<StrippedPair> next(TypeId local, TypeId candidate);
  Expected<bool> compatibleWithin(TypeId local, TypeId candidate, unsigned level);
  Expected<bool> compatibleParameters(const Stripped& ours, const Stripped& theirs, unsigned level);
  Expected<bool> matchesWithin(TypeId local, TypeId candidate, bool behindPointer, unsigned level);
  Expected<bool> matchesOnce(TypeId local, TypeId candidate, bool behindPointer, unsigned level);
  Expected<bool> matchesKind(const Stripped& ours, const Stripped& theirs, bool behindPointer, unsigned level);
  Expected<bool> enumsMatch(const struct btf_type& ours, const struct btf_type& theirs);
  Expected<bool> membersMatch(const struct btf_type& ours, const struct btf_type& theirs, unsigned level);
  Expected<bool> parametersMatch(const struct btf_type& ours, const struct btf_type& theirs, bool behindPointer,
                                 unsigned level);
  [[nodiscard]] bool namesMatch(std::uint32_t ours, std::uint32_t theirs) const;

  const Types& object_;
  const Types& target_;
  Work& work_;
  /// By local type, kernel type, and whether behind a pointer.
  std::unordered_map<std::uint64_t, bool> known_;
};

} // namespace btfd::core
