#pragma once

#include "access.h"
#include "work.h"

#include <optional>
#include <vector>

namespace btfd::core {

/// What keeps a type of the kernel from having what an access names.
struct Mismatch {
  enum class Reason : std::uint8_t { none, noSuchMember, incompatibleMember, notAStruct, notAnArray, indexOutOfBounds };

  Reason reason = Reason::none;
  /// Which of the access's accessors has no counterpart.
  std::uint32_t accessor = 0;
  /// The kernel's type that lacks it; for incompatibleMember, the type of the kernel's member.
  TypeId type = 0;
};

/// Finds in the kernel's types what an access of the object names. Keeps memory from one search to the next.
class FieldMatcher {
 public:
  FieldMatcher(const Types& object, Work& work) : object_(object), work_(work) {}

  /// Where `access` leads to in type `root` of `target`; nothing if it has no such field, element or one of another
  /// kind, which then mismatch() tells.
  Expected<std::optional<Place>> matchField(const LocalAccess& access, const Types& target, TypeId root);

  /// The enumerator of the same essential name in enum `root` of `target`.
  Expected<std::optional<Place>> matchEnumerator(const LocalAccess& access, const Types& target, TypeId root);

  [[nodiscard]] const Mismatch& mismatch() const { return mismatch_; }

 private:
  /// A search under way.
  struct Walk {
    const Types& target;
    Place place;
    /// Type that the next accessor applies to.
    TypeId at = 0;
    /// Steps so far, those through anonymous members too.
    std::uint32_t steps = 0;
  };

  Expected<bool> stepIntoElement(Walk& walk, const Accessor& accessor, bool isFirst);
  Expected<bool> findMember(Walk& walk, const Accessor& accessor, TypeId composite);
  Expected<bool> findBehind(Walk& walk, const Accessor& accessor, const Stripped& composite, std::uint32_t index);
  Expected<bool> compatible(TypeId local, const Types& target, TypeId candidate);
  std::nullopt_t mismatch(Mismatch::Reason reason, TypeId type);

  const Types& object_;
  Work& work_;
  Mismatch mismatch_;
  /// Anonymous structs and unions that were searched in vain for the current name.
  std::vector<TypeId> searched_;
};

} // namespace btfd::core
