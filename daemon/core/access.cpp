#include "access.h"

#include <cstring>
#include <limits>

namespace btfd::core {

namespace {

/// The numbers of an access string.
struct Indexes {
  std::array<std::uint32_t, kMaximumAccessors> numbers; // NOLINT: filled as far as count says
  std::uint32_t count = 0;
};

/// As many as the largest number has, that of a signed integer of 32 bits.
constexpr unsigned kMaximumDigits = 10;

/// Numbers with a colon between each two, nothing else: libbpf's sscanf would take blanks and signs too.
Expected<Indexes> readNumbers(const char* text) {
  Indexes indexes; // NOLINT
  while (true) {
    if (*text < '0' || *text > '9') {
      return std::unexpected(Fault::accessMalformed);
    }
    std::uint64_t number = 0;
    // Zeros in front would make a number of any length.
    unsigned digits = 0;
    for (; *text >= '0' && *text <= '9'; ++text) {
      number = number * 10 + static_cast<std::uint64_t>(*text - '0');
      if (number > std::numeric_limits<std::int32_t>::max() || ++digits > kMaximumDigits) {
        return std::unexpected(Fault::accessOutOfRange);
      }
    }
    if (indexes.count == kMaximumAccessors) {
      return std::unexpected(Fault::accessTooLong);
    }
    indexes.numbers[indexes.count++] = static_cast<std::uint32_t>(number); // NOLINT: checked above
    if (*text == '\0') {
      return indexes;
    }
    if (*text++ != ':') {
      return std::unexpected(Fault::accessMalformed);
    }
  }
}

} // namespace

bool isFlexibleArray(const Types& types, const Accessor& field, const struct btf_array& array) {
  if (field.name == nullptr || array.nelems != 0) {
    return false;
  }
  const std::uint32_t last = btf_vlen(types.find(field.type)) - 1;
  types.useMember(field.type, last); // which tells that the field is not the last
  return field.index == last;
}

Expected<void> addBits(std::uint64_t bits, std::uint64_t& bitOffset) {
  bitOffset += bits;
  if (bitOffset > std::numeric_limits<std::uint32_t>::max()) {
    return std::unexpected(Fault::offsetOverflow);
  }
  return {};
}

Expected<void> addElements(const Types& types, TypeId element, std::uint32_t elements, std::uint64_t& bitOffset) {
  const auto size = types.size(element);
  if (!size) {
    return std::unexpected(size.error());
  }
  // Both factors have 32 bits at most.
  const std::uint64_t bytes = *size * elements;
  if (bytes > std::numeric_limits<std::uint32_t>::max()) {
    return std::unexpected(Fault::offsetOverflow);
  }
  return addBits(bytes * 8, bitOffset);
}

Expected<LocalAccess> LocalAccess::parse(const Types& types, TypeId root, Kind kind, const char* text) {
  LocalAccess access;
  if (isTypeKind(kind)) {
    if (std::strcmp(text, "0") != 0) {
      return std::unexpected(Fault::accessNotZero);
    }
    return access;
  }
  if (!isFieldKind(kind) && !isEnumeratorKind(kind)) {
    return std::unexpected(Fault::unknownKind);
  }
  const auto indexes = readNumbers(text);
  if (!indexes) {
    return std::unexpected(indexes.error());
  }
  const auto numbers = std::span(indexes->numbers).first(indexes->count);
  const auto stripped = types.strip(root);
  if (!stripped) {
    return std::unexpected(stripped.error());
  }
  if (isEnumeratorKind(kind)) {
    if (!btf_is_any_enum(stripped->type)) {
      return std::unexpected(Fault::notAnEnum);
    }
    if (numbers.size() > 1 || numbers[0] >= btf_vlen(stripped->type)) {
      return std::unexpected(Fault::accessOutOfRange);
    }
    const char* name = types.string(enumeratorName(*stripped->type, numbers[0]));
    access.accessors_[access.length_++] = {.type = stripped->id, .index = numbers[0], .name = name};
    return access;
  }
  if (auto walked = access.walk(types, numbers, stripped->id); !walked) {
    return std::unexpected(walked.error());
  }
  return access;
}

Expected<void> LocalAccess::walk(const Types& types, std::span<const std::uint32_t> indexes, TypeId id) {
  // The first number indexes the pointer that the access starts from, as in p[2].field.
  accessors_[length_++] = {.type = id, .index = indexes[0], .name = nullptr};
  if (auto added = addElements(types, id, indexes[0], bitOffset_); !added) {
    return added;
  }
  for (const std::uint32_t index : indexes.subspan(1)) {
    const auto at = types.strip(id);
    if (!at) {
      return std::unexpected(at.error());
    }
    auto stepped = btf_is_composite(at->type) ? stepIntoField(types, *at, index, id)
                   : btf_is_array(at->type)   ? stepIntoElement(types, *at, index, id)
                                              : std::unexpected(Fault::accessIntoScalar);
    if (!stepped) {
      return stepped;
    }
  }
  return {};
}

Expected<void> LocalAccess::stepIntoField(const Types& types, const Stripped& at, std::uint32_t index, TypeId& next) {
  if (index >= btf_vlen(at.type)) {
    return std::unexpected(Fault::accessOutOfRange);
  }
  const struct btf_member& member = btf_members(at.type)[index];
  if (const char* name = types.string(member.name_off); *name != '\0') {
    accessors_[length_++] = {.type = at.id, .index = index, .name = name}; // NOLINT: one for each of the numbers
  }
  next = member.type;
  return addBits(btf_member_bit_offset(at.type, index), bitOffset_);
}

Expected<void> LocalAccess::stepIntoElement(const Types& types, const Stripped& at, std::uint32_t index, TypeId& next) {
  const struct btf_array& array = *btf_array(at.type);
  if (index >= array.nelems && !isFlexibleArray(types, accessors_[length_ - 1], array)) { // NOLINT
    return std::unexpected(Fault::accessOutOfRange);
  }
  const auto element = types.strip(array.type);
  if (!element) {
    return std::unexpected(element.error());
  }
  next = element->id;
  accessors_[length_++] = {.type = next, .index = index, .name = nullptr}; // NOLINT
  return addElements(types, next, index, bitOffset_);
}

} // namespace btfd::core
