#pragma once

#include "varlink/interface.h"

#include <nlohmann/json.hpp>

#include <expected>
#include <string>

namespace btfd::varlink {

/// Where a value does not fit its type, and why.
struct Violation {
  /// The offending field, as "programs.foo.attach[0].pid"; empty for the value itself.
  std::string path;
  /// As "is missing" or "must be an integer, not a string": reads on from the path.
  std::string reason;
};

/// Checks `value` against `type`: a method's input or output, an error's fields, or any other type of `interface`.
///
/// Null counts as absent where the type is nullable, and such fields are removed from `value`, so that whoever uses it
/// has only one case to look at. Integers are those of 64 bits; a number such as 1.0 is one, too (JavaScript makes no
/// difference). Where a field is missing, wrong or unknown, that is the result; `value` is then partly cleaned.
std::expected<void, Violation> validate(const Interface& interface, const Type& type, nlohmann::json& value);

} // namespace btfd::varlink
