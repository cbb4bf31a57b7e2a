#pragma once

#include "access.h"

#include <optional>

namespace btfd::core {

/// What a relocation asks, answered for one side: the object as it was compiled, or a type of the kernel.
struct Value {
  std::uint64_t value = 0;
  /// For byte offsets: size of the field, or of its array's elements, in bytes; 0 for bitfields and other kinds.
  std::uint64_t loadSize = 0;
  /// For byte offsets: the field's type, without typedefs and modifiers.
  TypeId loadType = 0;
  /// Whether the compiler must have put the object's value into the instruction.
  bool certain = true;
  /// Whether the value is an enumerator of 32 bits and no flag says that its enum is signed.
  bool extensionUnknown = false;

  bool operator==(const Value&) const = default;
};

/// The answer for the field at `place` of `types`. `bigEndian`: byte order of the machine that the object is for.
Expected<Value> fieldValue(Kind kind, const Types& types, const Place& place, bool bigEndian);

/// The answer for type `type`.
Expected<Value> typeValue(Kind kind, const Types& types, TypeId type);

/// The answer for the enumerator at `place` of `types`.
Value enumeratorValue(Kind kind, const Types& types, const Place& place);

} // namespace btfd::core
