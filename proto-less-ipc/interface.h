#pragma once

#include "base/error.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace btfd::varlink {

struct Field;

/// A type of the interface definition language (IDL).
struct Type {
  enum class Kind { boolean, integer, floating, string, object, any, enumeration, structure, array, map, named };

  Kind kind = Kind::structure;
  /// ?T: the value may be absent or null.
  bool nullable = false;
  /// enumeration: its members. structure: its fields. Else empty.
  std::vector<Field> fields;
  /// array, map: the type of what is in it, as the only element. Else empty.
  std::vector<Type> element;
  /// named: index in Interface::types.
  std::size_t target = 0;
};

/// A field of a structure, or (without type) a member of an enumeration.
struct Field {
  std::string name;
  std::string comment;
  Type type;
};

/// "type Name (...)"
struct TypeDefinition {
  std::string name;
  std::string comment;
  Type type;
};

/// "method Name(...) -> (...)"
struct MethodDefinition {
  std::string name;
  std::string comment;
  Type input;
  Type output;
  /// The comment says [Requires 'more' flag]: a call without it is answered with ExpectedMore.
  bool requiresMore = false;
  /// The comment says [Supports 'more' flag] or [Requires 'more' flag].
  bool supportsMore = false;
  /// A field somewhere in the input is named ...FileDescriptor: callers may send descriptors.
  bool takesDescriptors = false;
};

/// "error Name (...)"
struct ErrorDefinition {
  std::string name;
  std::string comment;
  Type fields;
};

/// An interface, as its IDL defines it. Comments are kept without "# ", their lines joined by newlines.
struct Interface {
  std::string name;
  std::string comment;
  std::vector<TypeDefinition> types;
  std::vector<MethodDefinition> methods;
  std::vector<ErrorDefinition> errors;
  /// The text that it was parsed from, for GetInterfaceDescription.
  std::string text;

  /// The method called `method`, without the interface's name; null if there is none.
  [[nodiscard]] const MethodDefinition* findMethod(std::string_view method) const;

  /// The error called `error`, without the interface's name; null if there is none.
  [[nodiscard]] const ErrorDefinition* findError(std::string_view error) const;
};

/// Parses the text of an interface. Errors read "line:column: what is wrong": syntax, duplicate names, types that are
/// not defined, structures that contain themselves without a ?, [] or [string] in between (no value could ever be
/// finite).
Result<Interface> parseInterface(std::string_view text);

} // namespace btfd::varlink
