#include "value.h"

namespace btfd::core {

namespace {

/// Bytes and bits that a field is read by.
struct Window {
  std::uint64_t byteOffset = 0;
  std::uint64_t byteSize = 0;
  std::uint64_t bitOffset = 0;
  std::uint64_t bitSize = 0;
};

/// The smallest aligned load that holds the bitfield: of its declared type's size, or twice, four times that.
Expected<Window> bitfieldWindow(const struct btf_type& type, std::uint64_t bitOffset, std::uint64_t bitSize) {
  if ((!btf_is_int(&type) && !btf_is_any_enum(&type)) || type.size == 0) {
    return std::unexpected(Fault::bitfieldOfOddType);
  }
  std::uint64_t size = type.size;
  const auto offset = [&] { return bitOffset / 8 / size * size; };
  while (bitOffset + bitSize - offset() * 8 > size * 8) {
    if (size >= 8) {
      return std::unexpected(Fault::bitfieldTooWide);
    }
    size *= 2;
  }
  return Window{.byteOffset = offset(), .byteSize = size, .bitOffset = bitOffset, .bitSize = bitSize};
}

Expected<void> addLoad(const Types& types, TypeId field, Value& value) {
  const auto element = types.element(field);
  if (!element) {
    return std::unexpected(element.error());
  }
  const auto size = types.size(element->id);
  if (!size) {
    return std::unexpected(size.error());
  }
  value.loadSize = *size;
  value.loadType = field;
  return {};
}

/// Only where an element is and how large it is can be asked of one.
Expected<Value> elementValue(Kind kind, const Types& types, const Place& place) {
  Value value;
  if (kind == Kind::fieldByteOffset) {
    value.value = place.bitOffset / 8;
    if (auto added = addLoad(types, place.last.type, value); !added) {
      return std::unexpected(added.error());
    }
    return value;
  }
  if (kind != Kind::fieldByteSize) {
    return std::unexpected(Fault::kindNeedsNamedField);
  }
  const auto size = types.size(place.last.type);
  if (!size) {
    return std::unexpected(size.error());
  }
  value.value = *size;
  return value;
}

bool isSigned(const struct btf_type& type) {
  return (btf_is_any_enum(&type) && btf_kflag(&type)) ||
         (btf_is_int(&type) && (btf_int_encoding(&type) & BTF_INT_SIGNED) != 0);
}

Expected<Window> windowOf(const Types& types, const Stripped& field, std::uint64_t bitOffset, std::uint32_t bitSize) {
  if (bitSize > 0) {
    return bitfieldWindow(*field.type, bitOffset, bitSize);
  }
  const auto size = types.size(field.id);
  if (!size) {
    return std::unexpected(size.error());
  }
  return Window{.byteOffset = bitOffset / 8, .byteSize = *size, .bitOffset = bitOffset, .bitSize = *size * 8};
}

} // namespace

Expected<Value> fieldValue(Kind kind, const Types& types, const Place& place, bool bigEndian) {
  if (kind == Kind::fieldExists) {
    return Value{.value = 1};
  }
  if (place.last.name == nullptr) {
    return elementValue(kind, types, place);
  }
  const struct btf_type* composite = types.find(place.last.type);
  const auto field = types.strip(btf_members(composite)[place.last.index].type);
  if (!field) {
    return std::unexpected(field.error());
  }
  const std::uint32_t bitfield = btf_member_bitfield_size(composite, place.last.index);
  const auto window = windowOf(types, *field, place.bitOffset, bitfield);
  if (!window) {
    return std::unexpected(window.error());
  }
  // Compilers choose for themselves how to read a bitfield; only its sign and its own width are certain.
  Value value{.certain = bitfield == 0 || kind == Kind::fieldSigned || kind == Kind::fieldRightShift};
  switch (kind) {
  case Kind::fieldByteOffset:
    value.value = window->byteOffset;
    if (bitfield == 0) {
      if (auto added = addLoad(types, field->id, value); !added) {
        return std::unexpected(added.error());
      }
    }
    break;
  case Kind::fieldByteSize:
    value.value = window->byteSize;
    break;
  case Kind::fieldSigned:
    value.value = isSigned(*field->type) ? 1 : 0;
    break;
  case Kind::fieldLeftShift: {
    const std::uint64_t within = window->bitOffset - window->byteOffset * 8;
    // In 32 bits, as libbpf: of fields larger than 8 bytes both see the same nonsense.
    value.value =
        static_cast<std::uint32_t>(bigEndian ? (8 - window->byteSize) * 8 + within : 64 - (within + window->bitSize));
    break;
  }
  default:
    value.value = static_cast<std::uint32_t>(64 - window->bitSize);
    break;
  }
  return value;
}

Expected<Value> typeValue(Kind kind, const Types& types, TypeId type) {
  switch (kind) {
  case Kind::typeIdLocal:
  case Kind::typeIdTarget:
    types.useId(type);
    // A linker may have changed the ids after the instruction was written.
    return Value{.value = type, .certain = false};
  case Kind::typeSize: {
    const auto size = types.size(type);
    if (!size) {
      return std::unexpected(size.error());
    }
    return Value{.value = *size};
  }
  default:
    return Value{.value = 1};
  }
}

Value enumeratorValue(Kind kind, const Types& types, const Place& place) {
  if (kind == Kind::enumeratorExists) {
    return Value{.value = 1};
  }
  const struct btf_type& type = *types.find(place.last.type);
  if (!btf_is_enum(&type)) {
    return Value{.value = btf_enum64_value(&btf_enum64(&type)[place.last.index])};
  }
  const std::int32_t value = btf_enum(&type)[place.last.index].val;
  if (btf_kflag(&type)) {
    return Value{.value = static_cast<std::uint64_t>(std::int64_t{value})};
  }
  return Value{.value = static_cast<std::uint32_t>(value), .extensionUnknown = true};
}

} // namespace btfd::core
