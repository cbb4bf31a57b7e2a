#include "value_types.h"

namespace btfd::object {

const struct btf_type* ValueTypes::resolve(std::uint32_t typeId) const {
  const int resolved = btf__resolve_type(&btf_, typeId); // bounded: fails on chains longer than 32
  return resolved < 0 ? nullptr : btf__type_by_id(&btf_, static_cast<std::uint32_t>(resolved));
}

std::string ValueTypes::nameOf(std::uint32_t offset) const {
  const char* name = btf__name_by_offset(&btf_, offset);
  return name == nullptr ? "" : name;
}

/// Of an array, its elements' type only down to kMaximumDepth, as a hostile array can contain itself.
std::string ValueTypes::describe(const struct btf_type* type, int depth) const {
  const std::string name = nameOf(type->name_off);
  switch (btf_kind(type)) {
  case BTF_KIND_STRUCT:
    return "struct " + (name.empty() ? "{...}" : name);
  case BTF_KIND_UNION:
    return "union " + (name.empty() ? "{...}" : name);
  case BTF_KIND_ENUM:
  case BTF_KIND_ENUM64:
    return "enum " + (name.empty() ? "{...}" : name);
  case BTF_KIND_ARRAY: {
    const struct btf_type* element = depth < kMaximumDepth ? resolve(btf_array(type)->type) : nullptr;
    return (element == nullptr ? "unknown" : describe(element, depth + 1)) + "[" +
           std::to_string(btf_array(type)->nelems) + "]";
  }
  default:
    return name.empty() ? "unknown" : name;
  }
}

std::optional<std::pair<std::uint64_t, bool>> ValueTypes::enumerator(const struct btf_type* type,
                                                                     const std::string& name) const {
  for (std::uint16_t i = 0; i < btf_vlen(type); ++i) {
    if (btf_kind(type) == BTF_KIND_ENUM64) {
      const struct btf_enum64& entry = btf_enum64(type)[i];
      if (nameOf(entry.name_off) == name) {
        const std::uint64_t number = btf_enum64_value(&entry);
        return std::pair(number, btf_kflag(type) && static_cast<std::int64_t>(number) < 0);
      }

    } else if (const struct btf_enum& entry = btf_enum(type)[i]; nameOf(entry.name_off) == name) {
      return std::pair(static_cast<std::uint64_t>(std::int64_t{entry.val}), entry.val < 0);
    }
  }
  return std::nullopt;
}

std::optional<std::string> ValueTypes::enumeratorOf(const struct btf_type* type, std::uint64_t bits) const {
  for (std::uint16_t i = 0; i < btf_vlen(type); ++i) {
    if (btf_kind(type) == BTF_KIND_ENUM64) {
      if (btf_enum64_value(&btf_enum64(type)[i]) == bits) {
        return nameOf(btf_enum64(type)[i].name_off);
      }
      continue;
    }
    // Of 32 bits, whatever the sign: that of an enum is a hint only.
    if (static_cast<std::uint32_t>(btf_enum(type)[i].val) == static_cast<std::uint32_t>(bits)) {
      return nameOf(btf_enum(type)[i].name_off);
    }
  }
  return std::nullopt;
}

std::vector<std::string> ValueTypes::enumeratorNames(const struct btf_type* type) const {
  std::vector<std::string> names;
  for (std::uint16_t i = 0; i < btf_vlen(type) && names.size() < kMaximumKnown; ++i) {
    names.push_back(
        nameOf(btf_kind(type) == BTF_KIND_ENUM64 ? btf_enum64(type)[i].name_off : btf_enum(type)[i].name_off));
  }
  return names;
}

} // namespace btfd::object
