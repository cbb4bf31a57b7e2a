#include "json_variable.h"

#include "base/near_misses.h"
#include "object/value_types.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

namespace btfd::loader {

namespace {

/// Anonymous structs and unions in one another that are searched for a member, which also bounds the recursion.
constexpr std::size_t kMaximumAnonymous = 1024;

/// As much of a value as a message repeats: enough to recognise it.
constexpr std::size_t kShownBytes = 64;

std::string shown(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > kShownBytes) {
    text.resize(kShownBytes);
    text += "...";
  }
  return text;
}

std::unexpected<Failure> misfit(std::string_view variable, const std::string& type, const std::string& why) {
  nlohmann::json parameters;
  parameters["message"] = "variable '" + std::string(variable) + "' of type " + type + ": " + why;
  parameters["variable"] = variable;
  parameters["type"] = type;
  return std::unexpected(Failure{"io.btfd.InvalidVariable", std::move(parameters)});
}

/// One value to be written at one place.
class Writer : private object::ValueTypes {
 public:
  explicit Writer(const struct ::btf& btf) : object::ValueTypes(btf) {}

  Outcome<void> write(std::uint32_t typeId, const nlohmann::json& value, std::span<std::byte> memory,
                      const std::string& path, int depth) {
    const struct btf_type* type = resolve(typeId);
    if (type == nullptr || depth > kMaximumDepth) {
      return misfit(path, "unknown", "its BTF type is incomplete or broken");
    }
    switch (btf_kind(type)) {
    case BTF_KIND_INT:
      return writeInteger(type, value, memory, path);
    case BTF_KIND_PTR:
      return writePointer(value, memory, path);
    case BTF_KIND_FLOAT:
      return writeFloat(type, value, memory, path);
    case BTF_KIND_ENUM:
    case BTF_KIND_ENUM64:
      return writeEnum(type, value, memory, path);
    case BTF_KIND_ARRAY:
      return writeArray(type, value, memory, path, depth);
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
      return writeMembers(type, value, memory, path, depth);
    case BTF_KIND_DATASEC:
      return writeSection(type, value, memory, path, depth);
    default:
      return misfit(path, describe(type), "a value of this kind cannot be set");
    }
  }

 private:
  /// Copies the low bytes of `bits`; a wider memory is filled with the sign.
  static void store(std::uint64_t bits, bool negative, std::span<std::byte> memory) {
    std::memset(memory.data(), negative ? 0xff : 0, memory.size());
    const std::size_t count = std::min(memory.size(), sizeof(bits));
    const auto* source = reinterpret_cast<const std::byte*>(&bits); // NOLINT
    if constexpr (std::endian::native == std::endian::little) {
      std::memcpy(memory.data(), source, count);
    } else {
      std::memcpy(memory.data() + memory.size() - count, source + sizeof(bits) - count, count);
    }
  }

  /// Whether an integer of `bits` bits can hold `value`.
  static bool fits(const nlohmann::json& value, std::size_t bits, bool isSigned) {
    if (value.is_number_unsigned()) {
      const std::size_t room = isSigned ? bits - 1 : bits;
      return room >= 64 || value.get<std::uint64_t>() >> room == 0;
    }
    const auto number = value.get<std::int64_t>();
    if (number >= 0) {
      return fits(nlohmann::json(static_cast<std::uint64_t>(number)), bits, isSigned);
    }
    return isSigned && (bits >= 64 || number >= -(std::int64_t{1} << (bits - 1)));
  }

  /// The number that a text is, in decimal or, behind 0x, in hexadecimal: many clients' JSON has no numbers of 64 bits.
  static std::optional<nlohmann::json> numberIn(const nlohmann::json& value) {
    if (!value.is_string()) {
      return std::nullopt;
    }
    std::string_view text = value.get_ref<const std::string&>();
    const bool negative = text.starts_with('-');
    text.remove_prefix(negative ? 1 : 0);
    const bool hexadecimal = text.starts_with("0x");
    text.remove_prefix(hexadecimal ? 2 : 0);
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, hexadecimal ? 16 : 10);
    if (error != std::errc{} || end != text.data() + text.size()) {
      return std::nullopt;
    }
    if (!negative) {
      return nlohmann::json(number);
    }
    constexpr std::uint64_t kLowest = std::uint64_t{1} << 63U; // its negative is the least of 64 bits
    return number > kLowest ? std::nullopt : std::optional(nlohmann::json(static_cast<std::int64_t>(0 - number)));
  }

  static Outcome<void> writeScalar(const nlohmann::json& value, std::span<std::byte> memory, const std::string& path,
                                   const std::string& type, bool isSigned) {
    if (const auto number = numberIn(value)) {
      return writeScalar(*number, memory, path, type, isSigned);
    }
    if (!value.is_number_integer()) {
      return misfit(path, type, "needs an integer, got " + shown(value));
    }
    if (!fits(value, memory.size() * 8, isSigned)) {
      return misfit(path, type,
                    value.dump() + " does not fit " + std::to_string(memory.size()) + " bytes, " +
                        (isSigned ? "signed" : "unsigned"));
    }
    const bool negative = !value.is_number_unsigned() && value.get<std::int64_t>() < 0;
    store(value.is_number_unsigned() ? value.get<std::uint64_t>()
                                     : static_cast<std::uint64_t>(value.get<std::int64_t>()),
          negative, memory);
    return {};
  }

  Outcome<void> writePointer(const nlohmann::json& value, std::span<std::byte> memory, const std::string& path) const {
    const std::size_t size = btf__pointer_size(&btf());
    if (size == 0 || memory.size() < size) {
      return misfit(path, "pointer", "its BTF type is larger than its place");
    }
    return writeScalar(value, memory.first(size), path, "pointer", false);
  }

  Outcome<void> writeInteger(const struct btf_type* type, const nlohmann::json& value, std::span<std::byte> memory,
                             const std::string& path) const {
    if (memory.size() < type->size || type->size == 0) {
      return misfit(path, describe(type), "its BTF type is larger than its place");
    }
    const auto place = memory.first(type->size);
    const auto encoding = btf_int_encoding(type);
    if (value.is_boolean()) {
      store(value.get<bool>() ? 1 : 0, false, place);
      return {};
    }
    if (encoding == BTF_INT_BOOL && !(value.is_number_integer() && (value == 0 || value == 1))) {
      return misfit(path, describe(type), "needs true or false, got " + shown(value));
    }
    if (type->size == 1 && value.is_string() && value.get_ref<const std::string&>().size() == 1) {
      store(static_cast<unsigned char>(value.get_ref<const std::string&>()[0]), false, place);
      return {};
    }
    // C's plain char is signed here, but people write bytes from 128 to 255 into it all the same.
    const bool lenient = type->size == 1 && nameOf(type->name_off) == "char" && value.is_number_unsigned();
    return writeScalar(value, place, path, describe(type), (encoding & BTF_INT_SIGNED) != 0 && !lenient);
  }

  Outcome<void> writeFloat(const struct btf_type* type, const nlohmann::json& value, std::span<std::byte> memory,
                           const std::string& path) const {
    if (!value.is_number()) {
      return misfit(path, describe(type), "needs a number, got " + shown(value));
    }
    if (type->size > memory.size()) {
      return misfit(path, describe(type), "its BTF type is larger than its place");
    }
    if (type->size == sizeof(double)) {
      const auto number = value.get<double>();
      std::memcpy(memory.data(), &number, sizeof(number));
    } else if (type->size == sizeof(float)) {
      if (std::abs(value.get<double>()) > std::numeric_limits<float>::max()) {
        return misfit(path, describe(type), shown(value) + " does not fit 4 bytes");
      }
      const auto number = static_cast<float>(value.get<double>());
      std::memcpy(memory.data(), &number, sizeof(number));
    } else {
      return misfit(path, describe(type), "floats of " + std::to_string(type->size) + " bytes cannot be set");
    }
    return {};
  }

  Outcome<void> writeEnum(const struct btf_type* type, const nlohmann::json& value, std::span<std::byte> memory,
                          const std::string& path) const {
    if (memory.size() < type->size || type->size == 0) {
      return misfit(path, describe(type), "its BTF type is larger than its place");
    }
    const auto place = memory.first(type->size);
    if (!value.is_string()) {
      // An enum's signedness is a hint only: both readings of its bits are taken.
      return writeScalar(value, place, path, describe(type), value.is_number_integer() && !value.is_number_unsigned());
    }
    const auto& name = value.get_ref<const std::string&>();
    const auto found = enumerator(type, name);
    if (const auto number = found ? std::nullopt : numberIn(value)) {
      return writeEnum(type, *number, memory, path);
    }
    if (!found) {
      return misfit(path, describe(type),
                    "it has no enumerator " + shown(value) + didYouMean(nearMisses(name, enumeratorNames(type))));
    }
    store(found->first, found->second, place);
    return {};
  }

  Outcome<void> writeArray(const struct btf_type* type, const nlohmann::json& value, std::span<std::byte> memory,
                           const std::string& path, int depth) {
    const struct btf_array& array = *btf_array(type);
    const struct btf_type* element = resolve(array.type);
    const std::int64_t size = btf__resolve_size(&btf(), array.type);
    if (element == nullptr || size <= 0 || static_cast<std::uint64_t>(size) * array.nelems > memory.size()) {
      return misfit(path, describe(type), "its BTF type is larger than its place");
    }
    if (value.is_string() && btf_kind(element) == BTF_KIND_INT && size == 1) {
      const auto& text = value.get_ref<const std::string&>();
      if (text.size() >= array.nelems) {
        return misfit(path, describe(type),
                      "a string of " + std::to_string(text.size()) + " bytes and its NUL do not fit");
      }
      std::memset(memory.data(), 0, array.nelems);
      std::memcpy(memory.data(), text.data(), text.size());
      return {};
    }
    if (!value.is_array()) {
      return misfit(path, describe(type), "needs an array, got " + shown(value));
    }
    if (value.size() > array.nelems) {
      return misfit(path, describe(type),
                    "it takes at most " + std::to_string(array.nelems) + " elements, got " +
                        std::to_string(value.size()));
    }
    for (std::size_t i = 0; i < value.size(); ++i) {
      const auto place = memory.subspan(i * static_cast<std::size_t>(size), static_cast<std::size_t>(size));
      if (auto done = write(array.type, value[i], place, path + "[" + std::to_string(i) + "]", depth + 1); !done) {
        return done;
      }
    }
    return {};
  }

  /// The member called `name` of `type` or of its anonymous members, and where it begins, in bits. What was `searched`
  /// in vain is not searched again: a hostile type can lead to another on 2^n ways, or to itself.
  std::optional<std::pair<const struct btf_member*, std::uint64_t>>
  member(const struct btf_type* type, const std::string& name, std::uint32_t& bitfield,
         std::unordered_set<const struct btf_type*>& searched) const {
    if (name.empty() || searched.size() > kMaximumAnonymous || !searched.insert(type).second) {
      return std::nullopt;
    }
    for (std::uint16_t i = 0; i < btf_vlen(type); ++i) {
      const struct btf_member& candidate = btf_members(type)[i];
      const std::uint64_t offset = btf_member_bit_offset(type, i);
      const std::string candidateName = nameOf(candidate.name_off);
      if (candidateName == name) {
        bitfield = btf_member_bitfield_size(type, i);
        return std::pair(&candidate, offset);
      }
      const struct btf_type* inner = candidateName.empty() ? resolve(candidate.type) : nullptr;
      if (inner != nullptr && btf_is_composite(inner)) {
        if (auto found = member(inner, name, bitfield, searched)) {
          return std::pair(found->first, found->second + offset);
        }
      }
    }
    return std::nullopt;
  }

  /// Names of the members of `types`.
  std::vector<std::string> memberNames(const std::unordered_set<const struct btf_type*>& types) const {
    std::vector<std::string> names;
    for (const struct btf_type* type : types) {
      for (std::uint16_t i = 0; i < btf_vlen(type) && names.size() < object::kMaximumKnown; ++i) {
        if (std::string name = nameOf(btf_members(type)[i].name_off); !name.empty()) {
          names.push_back(std::move(name));
        }
      }
    }
    return names;
  }

  /// Variables by name, in the memory of their section.
  Outcome<void> writeSection(const struct btf_type* type, const nlohmann::json& value, std::span<std::byte> memory,
                             const std::string& path, int depth) {
    if (!value.is_object()) {
      return misfit(path, nameOf(type->name_off), "needs an object, got " + shown(value));
    }
    for (const auto& [name, part] : value.items()) {
      const auto* place = variable(type, name);
      if (place == nullptr || place->offset > memory.size() || place->size > memory.size() - place->offset) {
        return misfit(path, nameOf(type->name_off), "it has no variable '" + name + "'");
      }
      const struct btf_type* found = btf__type_by_id(&btf(), place->type);
      if (auto done =
              write(found->type, part, memory.subspan(place->offset, place->size), path + "." + name, depth + 1);
          !done) {
        return done;
      }
    }
    return {};
  }

  const struct btf_var_secinfo* variable(const struct btf_type* section, const std::string& name) const {
    for (std::uint16_t i = 0; i < btf_vlen(section); ++i) {
      const struct btf_var_secinfo& place = btf_var_secinfos(section)[i];
      const struct btf_type* found = btf__type_by_id(&btf(), place.type);
      if (found != nullptr && btf_is_var(found) && nameOf(found->name_off) == name) {
        return &place;
      }
    }
    return nullptr;
  }

  /// What is to be written into a bitfield of type `member`; null if that cannot be.
  nlohmann::json bitfieldNumber(const struct btf_type* member, const nlohmann::json& value) const {
    if (value.is_boolean()) {
      return value.get<bool>() ? 1U : 0U;
    }
    if (!value.is_string()) {
      return value;
    }
    const auto found =
        member != nullptr && isEnum(member) ? enumerator(member, value.get_ref<const std::string&>()) : std::nullopt;
    if (found) {
      return found->second ? nlohmann::json(static_cast<std::int64_t>(found->first)) : nlohmann::json(found->first);
    }
    return numberIn(value).value_or(nullptr);
  }

  Outcome<void> writeMembers(const struct btf_type* type, const nlohmann::json& value, std::span<std::byte> memory,
                             const std::string& path, int depth) {
    if (!value.is_object()) {
      return misfit(path, describe(type), "needs an object, got " + shown(value));
    }
    for (const auto& [name, part] : value.items()) {
      std::uint32_t bitfield = 0;
      std::unordered_set<const struct btf_type*> searched;
      const auto found = member(type, name, bitfield, searched);
      if (!found) {
        return misfit(path, describe(type),
                      "it has no member '" + name + "'" + didYouMean(nearMisses(name, memberNames(searched))));
      }
      const std::string inner = path + "." + name;
      if (bitfield != 0) {
        if (auto done = writeBitfield(found->first->type, part, memory, found->second, bitfield, inner); !done) {
          return done;
        }
        continue;
      }
      if (found->second % 8 != 0) {
        return misfit(inner, describe(type), "its BTF type has it at no byte boundary");
      }
      const std::int64_t size = btf__resolve_size(&btf(), found->first->type);
      const std::uint64_t at = found->second / 8;
      if (size < 0 || at > memory.size() || static_cast<std::uint64_t>(size) > memory.size() - at) {
        return misfit(inner, describe(type), "its BTF type is larger than its place");
      }
      const auto place = memory.subspan(at, static_cast<std::size_t>(size));
      if (auto done = write(found->first->type, part, place, inner, depth + 1); !done) {
        return done;
      }
    }
    return {};
  }

  Outcome<void> writeBitfield(std::uint32_t typeId, const nlohmann::json& value, std::span<std::byte> memory,
                              std::uint64_t offset, std::uint32_t bits, const std::string& path) const {
    const struct btf_type* member = resolve(typeId);
    const std::string type =
        (member == nullptr ? "unknown" : describe(member)) + ", a bitfield of " + std::to_string(bits) + " bits";
    const nlohmann::json number = bitfieldNumber(member, value);
    const bool isInteger = member != nullptr && btf_kind(member) == BTF_KIND_INT;
    // An enum's signedness is a hint only, and so is that of a broken BTF's type.
    const bool mayBeSigned = !isInteger || (btf_int_encoding(member) & BTF_INT_SIGNED) != 0;
    const bool mayBeUnsigned = !isInteger || !mayBeSigned;
    if (!number.is_number_integer() ||
        !((mayBeUnsigned && fits(number, bits, false)) || (mayBeSigned && fits(number, bits, true)))) {
      return misfit(path, type, shown(value) + " does not fit");
    }
    if (bits > 64 || offset + bits > memory.size() * 8) {
      return misfit(path, type, "its BTF type is larger than its place");
    }
    const std::uint64_t pattern = number.is_number_unsigned() ? number.get<std::uint64_t>()
                                                              : static_cast<std::uint64_t>(number.get<std::int64_t>());
    for (std::uint32_t i = 0; i < bits; ++i) {
      const std::uint64_t bit = offset + (std::endian::native == std::endian::little ? i : bits - 1 - i);
      const std::uint64_t within = std::endian::native == std::endian::little ? bit % 8 : 7 - bit % 8;
      const auto mask = static_cast<std::byte>(1U << within);
      std::byte& target = memory[bit / 8];
      target = (pattern >> i & 1U) != 0 ? target | mask : target & ~mask;
    }
    return {};
  }
};

} // namespace

Outcome<void> writeVariable(const struct ::btf& btf, std::uint32_t typeId, const nlohmann::json& value,
                            std::span<std::byte> memory, std::string_view variable) {
  return Writer(btf).write(typeId, value, memory, std::string(variable), 0);
}

} // namespace btfd::loader
