#include "varlink/validate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace btfd::varlink {

namespace {

using nlohmann::json;
using Checked = std::expected<void, Violation>;

std::unexpected<Violation> violation(std::string reason) {
  return std::unexpected(Violation{{}, std::move(reason)});
}

/// A violation inside of field or element `step`, seen from its container. Paths are put together on the way out, so
/// that valid values cost nothing.
std::unexpected<Violation> inside(const std::string& step, Violation violation) {
  const bool needsDot = !violation.path.empty() && !violation.path.starts_with('[');
  violation.path = step + (needsDot ? "." : "") + violation.path;
  return std::unexpected(std::move(violation));
}

std::unexpected<Violation> wrongType(std::string_view expected, const json& value) {
  return violation("must be " + std::string(expected) + ", not " + value.type_name());
}

class Validator {
 public:
  explicit Validator(const Interface& interface) : interface_(interface) {}

  Checked check(const Type& type, json& value) const;

 private:
  Checked checkStructure(const Type& type, json& value) const;
  Checked checkArray(const Type& type, json& value) const;
  Checked checkMap(const Type& type, json& value) const;

  const Interface& interface_;
};

/// Makes an integer of one that is written as a float ("4.0", "1e3"), so that all who read it find an integer.
Checked checkInteger(json& value) {
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return violation("does not fit a 64-bit signed integer");
  }
  if (value.is_number_integer()) {
    return {};
  }
  if (!value.is_number_float()) {
    return wrongType("an integer", value);
  }
  const auto number = value.get<double>();
  if (std::trunc(number) != number) {
    return violation("must be an integer, not a fraction");
  }
  // Beyond 2^53 a double no longer says which integer is meant.
  constexpr double kExact = 9007199254740992.0;
  if (std::abs(number) > kExact) {
    return violation("is too large to be written as a float: it would not be exact");
  }
  value = static_cast<std::int64_t>(number);
  return {};
}

Checked checkEnumeration(const Type& type, const json& value) {
  if (!value.is_string()) {
    return wrongType("a string", value);
  }
  if (std::ranges::find(type.fields, value.get_ref<const std::string&>(), &Field::name) != type.fields.end()) {
    return {};
  }
  std::string members;
  for (const auto& member : type.fields) {
    members.append(members.empty() ? "" : ", ").append(member.name);
  }
  return violation("must be one of: " + members);
}

Checked Validator::check(const Type& type, json& value) const {
  if (type.nullable && value.is_null()) {
    return {};
  }
  switch (type.kind) {
  case Type::Kind::boolean:
    return value.is_boolean() ? Checked{} : wrongType("a boolean", value);
  case Type::Kind::integer:
    return checkInteger(value);
  case Type::Kind::floating:
    return value.is_number() ? Checked{} : wrongType("a number", value);
  case Type::Kind::string:
    return value.is_string() ? Checked{} : wrongType("a string", value);
  case Type::Kind::object:
    return value.is_object() ? Checked{} : wrongType("an object", value);
  case Type::Kind::any:
    return {};
  case Type::Kind::enumeration:
    return checkEnumeration(type, value);
  case Type::Kind::structure:
    return checkStructure(type, value);
  case Type::Kind::array:
    return checkArray(type, value);
  case Type::Kind::map:
    return checkMap(type, value);
  case Type::Kind::named:
    return check(interface_.types[type.target].type, value);
  }
  return violation("has a type of unknown kind");
}

Checked Validator::checkStructure(const Type& type, json& value) const {
  if (!value.is_object()) {
    return wrongType("an object", value);
  }
  for (const auto& [name, unused] : value.items()) {
    if (std::ranges::find(type.fields, name, &Field::name) == type.fields.end()) {
      return inside(name, {{}, "is not a known field"});
    }
  }
  for (const auto& field : type.fields) {
    const auto found = value.find(field.name);
    if (found == value.end() || (found->is_null() && field.type.kind != Type::Kind::any)) {
      if (!field.type.nullable) {
        return inside(field.name, {{}, "is missing"});
      }
      if (found != value.end()) {
        value.erase(found);
      }
      continue;
    }
    if (auto checked = check(field.type, *found); !checked) {
      return inside(field.name, std::move(checked.error()));
    }
  }
  return {};
}

Checked Validator::checkArray(const Type& type, json& value) const {
  if (!value.is_array()) {
    return wrongType("an array", value);
  }
  for (std::size_t index = 0; index < value.size(); ++index) {
    if (auto checked = check(type.element.front(), value[index]); !checked) {
      return inside("[" + std::to_string(index) + "]", std::move(checked.error()));
    }
  }
  return {};
}

Checked Validator::checkMap(const Type& type, json& value) const {
  if (!value.is_object()) {
    return wrongType("an object", value);
  }
  for (auto& [key, element] : value.items()) {
    if (auto checked = check(type.element.front(), element); !checked) {
      return inside(key, std::move(checked.error()));
    }
  }
  return {};
}

} // namespace

std::expected<void, Violation> validate(const Interface& interface, const Type& type, json& value) {
  return Validator(interface).check(type, value);
}

} // namespace btfd::varlink
