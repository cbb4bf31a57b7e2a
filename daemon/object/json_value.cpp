#include "json_value.h"

#include "base/text.h"
#include "value_types.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace btfd::object {

namespace {

/// Parts that one value may have: as JSON they take some megabytes.
constexpr std::size_t kMaximumParts = std::size_t{1} << 18;

/// Integers of as many bytes as one can load.
std::uint64_t loadBits(std::span<const std::byte> memory) {
  std::uint64_t bits = 0;
  auto* target = reinterpret_cast<std::byte*>(&bits); // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
  const std::size_t count = std::min(memory.size(), sizeof(bits));
  std::memcpy(std::endian::native == std::endian::little ? target : target + sizeof(bits) - count, memory.data(),
              count);
  return bits;
}

/// `bits` as a number, whose highest bit is the one before `width`.
nlohmann::json number(std::uint64_t bits, std::size_t width, bool isSigned) {
  if (isSigned) {
    const auto unused = 64 - width;
    return static_cast<std::int64_t>(bits << unused) >> unused;
  }
  if (bits > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return std::to_string(bits);
  }
  return bits;
}

std::string hexadecimal(std::span<const std::byte> memory) {
  std::vector<std::byte> bytes(memory.begin(), memory.end());
  if constexpr (std::endian::native == std::endian::little) {
    std::ranges::reverse(bytes);
  }
  std::string digits = toHex(bytes);
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  return "0x" + digits;
}

/// One value at one place.
class Reader : private ValueTypes {
 public:
  explicit Reader(const struct ::btf& btf) : ValueTypes(btf) {}

  std::optional<nlohmann::json> read(std::uint32_t typeId, std::span<const std::byte> memory, int depth) {
    const struct btf_type* type = resolve(typeId);
    if (type == nullptr || depth > kMaximumDepth || ++parts_ > kMaximumParts) {
      return std::nullopt;
    }
    switch (btf_kind(type)) {
    case BTF_KIND_INT:
      return readInteger(type, memory);
    case BTF_KIND_PTR:
      return readPointer(memory);
    case BTF_KIND_FLOAT:
      return readFloat(type, memory);
    case BTF_KIND_ENUM:
    case BTF_KIND_ENUM64:
      return readEnum(type, memory);
    case BTF_KIND_ARRAY:
      return readArray(type, memory, depth);
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
      return readMembers(type, memory, depth);
    case BTF_KIND_DATASEC:
      return readSection(type, memory, depth);
    default:
      return std::nullopt;
    }
  }

 private:
  using Value = std::optional<nlohmann::json>;

  static Value readInteger(const struct btf_type* type, std::span<const std::byte> memory) {
    if (type->size == 0 || type->size > memory.size()) {
      return std::nullopt;
    }
    const auto place = memory.first(type->size);
    if (place.size() > sizeof(std::uint64_t)) {
      return hexadecimal(place);
    }
    const std::uint64_t bits = loadBits(place);
    const auto encoding = btf_int_encoding(type);
    if (encoding == BTF_INT_BOOL && bits <= 1) {
      return bits == 1;
    }
    return number(bits, place.size() * 8, (encoding & BTF_INT_SIGNED) != 0);
  }

  [[nodiscard]] Value readPointer(std::span<const std::byte> memory) const {
    const std::size_t size = btf__pointer_size(&btf());
    return size == 0 || size > memory.size() ? std::nullopt : Value(hexadecimal(memory.first(size)));
  }

  static Value readFloat(const struct btf_type* type, std::span<const std::byte> memory) {
    if (type->size > memory.size()) {
      return std::nullopt;
    }
    double value = 0;
    if (type->size == sizeof(double)) {
      std::memcpy(&value, memory.data(), sizeof(value));
    } else if (type->size == sizeof(float)) {
      float narrow = 0;
      std::memcpy(&narrow, memory.data(), sizeof(narrow));
      value = narrow;
    } else {
      return hexadecimal(memory.first(type->size));
    }
    // JSON has no infinity, and no NaN.
    return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(hexadecimal(memory.first(type->size)));
  }

  [[nodiscard]] Value enumValue(const struct btf_type* type, std::uint64_t bits, std::size_t width) const {
    const nlohmann::json value = number(bits, width, btf_kflag(type));
    const auto asLoaded = value.is_number() ? static_cast<std::uint64_t>(value.get<std::int64_t>()) : bits;
    const auto name = enumeratorOf(type, asLoaded);
    return name && !name->empty() ? nlohmann::json(escaped(*name)) : value;
  }

  [[nodiscard]] Value readEnum(const struct btf_type* type, std::span<const std::byte> memory) const {
    if (type->size == 0 || type->size > std::min(memory.size(), sizeof(std::uint64_t))) {
      return std::nullopt;
    }
    return enumValue(type, loadBits(memory.first(type->size)), std::size_t{type->size} * 8);
  }

  /// The text that an array of char holds: showable up to a NUL, behind which there is nothing else.
  static std::optional<std::string> textIn(std::span<const std::byte> memory) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
    const std::string_view all(reinterpret_cast<const char*>(memory.data()), memory.size());
    const std::size_t length = all.find('\0');
    if (length == std::string_view::npos || all.find_first_not_of('\0', length) != std::string_view::npos ||
        !isShowable(all.substr(0, length))) {
      return std::nullopt;
    }
    return std::string(all.substr(0, length));
  }

  Value readArray(const struct btf_type* type, std::span<const std::byte> memory, int depth) {
    const struct btf_array& array = *btf_array(type);
    const struct btf_type* element = resolve(array.type);
    const std::int64_t resolved = btf__resolve_size(&btf(), array.type);
    if (element == nullptr || resolved <= 0) {
      return std::nullopt;
    }
    const auto size = static_cast<std::size_t>(resolved);
    if (size * array.nelems > memory.size()) { // neither has more than 32 bits
      return std::nullopt;
    }
    if (btf_kind(element) == BTF_KIND_INT && size == 1 && isChar(element)) {
      if (auto text = textIn(memory.first(array.nelems))) {
        return *text;
      }
    }
    nlohmann::json values = nlohmann::json::array();
    for (std::size_t i = 0; i < array.nelems; ++i) {
      auto value = read(array.type, memory.subspan(i * size, size), depth + 1);
      if (!value) {
        return std::nullopt;
      }
      values.push_back(std::move(*value));
    }
    return values;
  }

  [[nodiscard]] bool isChar(const struct btf_type* type) const {
    const std::string name = nameOf(type->name_off);
    return name == "char" || (btf_int_encoding(type) & BTF_INT_CHAR) != 0;
  }

  Value readMembers(const struct btf_type* type, std::span<const std::byte> memory, int depth) {
    nlohmann::json members = nlohmann::json::object();
    return addMembers(type, memory, depth, members) ? Value(std::move(members)) : std::nullopt;
  }

  bool addMembers(const struct btf_type* type, std::span<const std::byte> memory, int depth, nlohmann::json& members) {
    if (depth > kMaximumDepth || ++parts_ > kMaximumParts) {
      return false;
    }
    for (std::uint16_t i = 0; i < btf_vlen(type); ++i) {
      const struct btf_member& member = btf_members(type)[i];
      const std::uint32_t offset = btf_member_bit_offset(type, i);
      const std::string name = nameOf(member.name_off);
      if (const std::uint32_t bits = btf_member_bitfield_size(type, i); bits != 0) {
        auto value = readBitfield(member.type, memory, offset, bits);
        if (!value) {
          return false;
        }
        if (!name.empty()) { // else it only fills
          members[escaped(name)] = std::move(*value);
        }
        continue;
      }
      const std::int64_t size = btf__resolve_size(&btf(), member.type);
      const struct btf_type* inner = resolve(member.type);
      if (inner == nullptr || size < 0 || offset % 8 != 0 || offset / 8 > memory.size() ||
          static_cast<std::size_t>(size) > memory.size() - offset / 8) {
        return false;
      }
      const auto place = memory.subspan(offset / 8, static_cast<std::size_t>(size));
      if (name.empty() && btf_is_composite(inner)) {
        if (!addMembers(inner, place, depth + 1, members)) {
          return false;
        }
        continue;
      }
      auto value = size == 0 ? Value(nlohmann::json::array()) : read(member.type, place, depth + 1); // a flexible array
      if (!value) {
        return false;
      }
      members[escaped(name)] = std::move(*value);
    }
    return true;
  }

  Value readBitfield(std::uint32_t typeId, std::span<const std::byte> memory, std::uint64_t offset,
                     std::uint32_t bits) const {
    const struct btf_type* type = resolve(typeId);
    if (type == nullptr || bits > 64 || offset + bits > memory.size() * 8) {
      return std::nullopt;
    }
    std::uint64_t pattern = 0;
    for (std::uint32_t i = 0; i < bits; ++i) {
      const std::uint64_t bit = offset + (std::endian::native == std::endian::little ? i : bits - 1 - i);
      const std::uint64_t within = std::endian::native == std::endian::little ? bit % 8 : 7 - bit % 8;
      pattern |= std::to_integer<std::uint64_t>(memory[bit / 8] >> within & std::byte{1}) << i;
    }
    if (isEnum(type)) {
      return enumValue(type, pattern, bits);
    }
    const bool isInteger = btf_kind(type) == BTF_KIND_INT;
    if (isInteger && btf_int_encoding(type) == BTF_INT_BOOL && pattern <= 1) {
      return pattern == 1;
    }
    return number(pattern, bits, isInteger && (btf_int_encoding(type) & BTF_INT_SIGNED) != 0);
  }

  Value readSection(const struct btf_type* type, std::span<const std::byte> memory, int depth) {
    nlohmann::json variables = nlohmann::json::object();
    for (std::uint16_t i = 0; i < btf_vlen(type); ++i) {
      const struct btf_var_secinfo& place = btf_var_secinfos(type)[i];
      const struct btf_type* variable = btf__type_by_id(&btf(), place.type);
      if (variable == nullptr || !btf_is_var(variable) || place.offset > memory.size() ||
          place.size > memory.size() - place.offset) {
        return std::nullopt;
      }
      auto value = read(variable->type, memory.subspan(place.offset, place.size), depth + 1);
      if (!value) {
        return std::nullopt;
      }
      variables[escaped(nameOf(variable->name_off))] = std::move(*value);
    }
    return variables;
  }

  std::size_t parts_ = 0;
};

} // namespace

std::optional<nlohmann::json> readValue(const struct ::btf& btf, std::uint32_t typeId,
                                        std::span<const std::byte> memory) {
  return typeId == 0 ? std::nullopt : Reader(btf).read(typeId, memory, 0);
}

} // namespace btfd::object
