#include "varlink/interface.h"
#include "varlink/interface_lexer.h"

#include <algorithm>
#include <optional>
#include <utility>

// The grammar is the one of https://varlink.org/Interface-Definition, with the type "any" of newer implementations.

namespace btfd::varlink {

namespace {

using detail::Lexer;
using detail::Position;
using detail::Token;

/// Levels of types within types. The parser recurses, so hostile text must not choose how deep.
constexpr std::size_t kTypeNestingLimit = 32;

/// What the DNS allows, which interface names follow.
constexpr std::size_t kInterfaceNameLimit = 255;

bool isUpper(char character) {
  return character >= 'A' && character <= 'Z';
}

bool isLetter(char character) {
  return isUpper(character) || (character >= 'a' && character <= 'z');
}

bool isAlphanumeric(char character) {
  return isLetter(character) || (character >= '0' && character <= '9');
}

/// [A-Z][A-Za-z0-9]*
bool isMemberName(std::string_view name) {
  return !name.empty() && isUpper(name.front()) && std::ranges::all_of(name, isAlphanumeric);
}

/// [A-Za-z](_?[A-Za-z0-9])*
bool isFieldName(std::string_view name) {
  return !name.empty() && isLetter(name.front()) && !name.ends_with('_') && !name.contains("__") &&
         std::ranges::all_of(name, [](char character) { return isAlphanumeric(character) || character == '_'; });
}

/// [A-Za-z](-*[A-Za-z0-9])*(\.[A-Za-z0-9](-*[A-Za-z0-9])*)+
bool isInterfaceName(std::string_view name) {
  if (name.size() > kInterfaceNameLimit || !name.contains('.') || !isLetter(name.front())) {
    return false;
  }
  while (!name.empty()) {
    const std::string_view label = name.substr(0, name.find('.'));
    const bool valid =
        !label.empty() && isAlphanumeric(label.front()) && isAlphanumeric(label.back()) &&
        std::ranges::all_of(label, [](char character) { return isAlphanumeric(character) || character == '-'; });
    if (!valid || name.ends_with('.')) {
      return false;
    }
    name.remove_prefix(std::min(label.size() + 1, name.size()));
  }
  return true;
}

std::optional<Type::Kind> simpleKind(std::string_view word) {
  using enum Type::Kind;
  constexpr std::pair<std::string_view, Type::Kind> kKinds[] = {
      {"bool", boolean}, {"int", integer}, {"float", floating}, {"string", string}, {"object", object}, {"any", any}};
  const auto* found = std::ranges::find(kKinds, word, &std::pair<std::string_view, Type::Kind>::first);
  return found == std::end(kKinds) ? std::nullopt : std::optional(found->second);
}

std::unexpected<Error> failAt(Position position, const std::string& what) {
  return fail(std::to_string(position.line) + ":" + std::to_string(position.column) + ": " + what);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {
    interface_.text = text;
    take();
  }

  Result<Interface> parse();

 private:
  /// A place where a type is named, to be found once all types are known.
  struct Reference {
    std::string_view name;
    Position position;
  };

  Token take() { return std::exchange(token_, lexer_.next()); }

  [[nodiscard]] bool isAt(std::string_view text) const { return token_.text == text; }

  bool takeIf(std::string_view text);
  Result<void> expect(std::string_view text);
  [[nodiscard]] std::unexpected<Error> expected(std::string_view what) const;

  Result<void> parseHeader();
  Result<void> parseMember();
  Result<void> parseMethod(std::string name, std::string comment);
  Result<std::string> parseMemberName();
  Result<Type> parseType(std::size_t depth);
  Result<Type> parseElementType(std::size_t depth);
  Result<Type> parseBraces(std::size_t depth);
  Result<Type> parseStructure();
  Result<void> parseField(Type& type, bool first, std::size_t depth);

  Result<void> resolve(Type& type);
  Result<void> checkFinite();
  bool reaches(const Type& type, std::size_t definition, std::vector<bool>& seen) const;
  bool namesDescriptor(const Type& type, std::vector<bool>& seen) const;

  Lexer lexer_;
  Token token_;
  Interface interface_;
  std::vector<Reference> references_; ///< Type::target is an index into this until `resolve`.
  std::vector<Position> typePositions_;
  std::vector<std::string_view> memberNames_;
};

bool Parser::takeIf(std::string_view text) {
  const bool found = isAt(text);
  if (found) {
    take();
  }
  return found;
}

Result<void> Parser::expect(std::string_view text) {
  if (!takeIf(text)) {
    return expected("\"" + std::string(text) + "\"");
  }
  return {};
}

std::unexpected<Error> Parser::expected(std::string_view what) const {
  const std::string found =
      token_.kind == Token::Kind::end ? "the end of the text" : "\"" + std::string(token_.text) + "\"";
  return failAt(token_.position, "expected " + std::string(what) + ", found " + found);
}

Result<Interface> Parser::parse() {
  if (auto parsed = parseHeader(); !parsed) {
    return std::unexpected(std::move(parsed.error()));
  }
  while (token_.kind != Token::Kind::end) {
    if (auto parsed = parseMember(); !parsed) {
      return std::unexpected(std::move(parsed.error()));
    }
  }
  std::vector<Type*> roots;
  roots.reserve(interface_.types.size() + 2 * interface_.methods.size() + interface_.errors.size());
  for (auto& definition : interface_.types) {
    roots.push_back(&definition.type);
  }
  for (auto& method : interface_.methods) {
    roots.insert(roots.end(), {&method.input, &method.output});
  }
  for (auto& error : interface_.errors) {
    roots.push_back(&error.fields);
  }
  for (Type* root : roots) {
    if (auto resolved = resolve(*root); !resolved) {
      return std::unexpected(std::move(resolved.error()));
    }
  }
  if (auto finite = checkFinite(); !finite) {
    return std::unexpected(std::move(finite.error()));
  }
  for (auto& method : interface_.methods) {
    std::vector<bool> seen(interface_.types.size());
    method.takesDescriptors = namesDescriptor(method.input, seen);
  }
  return std::move(interface_);
}

Result<void> Parser::parseHeader() {
  interface_.comment = token_.comment;
  if (auto keyword = expect("interface"); !keyword) {
    return keyword;
  }
  if (token_.kind != Token::Kind::word || !isInterfaceName(token_.text)) {
    return expected("an interface name such as \"org.example.service\"");
  }
  interface_.name = take().text;
  return {};
}

Result<void> Parser::parseMember() {
  const Token keyword = take();
  if (keyword.text != "type" && keyword.text != "method" && keyword.text != "error") {
    return failAt(keyword.position,
                  R"(expected "type", "method" or "error", found ")" + std::string(keyword.text) + "\"");
  }
  const Position position = token_.position;
  auto name = parseMemberName();
  if (!name) {
    return std::unexpected(std::move(name.error()));
  }
  if (keyword.text == "method") {
    return parseMethod(std::move(*name), keyword.comment);
  }
  auto type = keyword.text == "type" ? parseBraces(0) : parseStructure();
  if (!type) {
    return std::unexpected(std::move(type.error()));
  }
  if (keyword.text == "type") {
    typePositions_.push_back(position);
    interface_.types.push_back({std::move(*name), keyword.comment, std::move(*type)});
  } else {
    interface_.errors.push_back({std::move(*name), keyword.comment, std::move(*type)});
  }
  return {};
}

Result<void> Parser::parseMethod(std::string name, std::string comment) {
  auto input = parseStructure();
  if (!input) {
    return std::unexpected(std::move(input.error()));
  }
  if (auto arrow = expect("->"); !arrow) {
    return arrow;
  }
  auto output = parseStructure();
  if (!output) {
    return std::unexpected(std::move(output.error()));
  }
  MethodDefinition method;
  method.requiresMore = comment.contains("[Requires 'more' flag]");
  method.supportsMore = method.requiresMore || comment.contains("[Supports 'more' flag]");
  method.name = std::move(name);
  method.comment = std::move(comment);
  method.input = std::move(*input);
  method.output = std::move(*output);
  interface_.methods.push_back(std::move(method));
  return {};
}

Result<std::string> Parser::parseMemberName() {
  if (!isMemberName(token_.text)) {
    return expected("a name of letters and digits that starts with a capital");
  }
  if (std::ranges::find(memberNames_, token_.text) != memberNames_.end()) {
    return failAt(token_.position, "\"" + std::string(token_.text) + "\" is defined twice");
  }
  memberNames_.push_back(token_.text);
  return std::string(take().text);
}

Result<Type> Parser::parseType(std::size_t depth) {
  if (depth > kTypeNestingLimit) {
    return failAt(token_.position, "types nested deeper than " + std::to_string(kTypeNestingLimit) + " levels");
  }
  const bool nullable = takeIf("?");
  if (nullable && isAt("?")) {
    return expected("a type behind \"?\"");
  }
  Result<Type> type;
  if (takeIf("[")) {
    type = Type{};
    type->kind = takeIf("string") ? Type::Kind::map : Type::Kind::array;
    if (auto closed = expect("]"); !closed) {
      return std::unexpected(std::move(closed.error()));
    }
    auto element = parseType(depth + 1);
    if (!element) {
      return element;
    }
    type->element.push_back(std::move(*element));
  } else {
    type = parseElementType(depth);
  }
  if (type) {
    type->nullable = nullable;
  }
  return type;
}

Result<Type> Parser::parseElementType(std::size_t depth) {
  if (isAt("(")) {
    return parseBraces(depth + 1);
  }
  Type type;
  if (const auto kind = simpleKind(token_.text)) {
    type.kind = *kind;
  } else if (isMemberName(token_.text)) {
    type.kind = Type::Kind::named;
    type.target = references_.size();
    references_.push_back({token_.text, token_.position});
  } else {
    return expected("a type");
  }
  take();
  return type;
}

Result<Type> Parser::parseStructure() {
  const Position position = token_.position;
  auto type = parseBraces(0);
  if (type && type->kind != Type::Kind::structure) {
    return failAt(position, "expected fields with types, found an enumeration");
  }
  return type;
}

/// A structure "(name: type, ...)" or an enumeration "(name, ...)"; "()" is an empty structure.
Result<Type> Parser::parseBraces(std::size_t depth) {
  if (auto opened = expect("("); !opened) {
    return std::unexpected(std::move(opened.error()));
  }
  Type type;
  if (takeIf(")")) {
    return type;
  }
  bool first = true;
  do {
    if (auto parsed = parseField(type, first, depth); !parsed) {
      return std::unexpected(std::move(parsed.error()));
    }
    first = false;
  } while (takeIf(","));
  if (auto closed = expect(")"); !closed) {
    return std::unexpected(std::move(closed.error()));
  }
  return type;
}

/// The first field says whether `type` is a structure or an enumeration, the others must agree.
Result<void> Parser::parseField(Type& type, bool first, std::size_t depth) {
  if (!isFieldName(token_.text)) {
    return expected("a field name");
  }
  if (std::ranges::find(type.fields, token_.text, &Field::name) != type.fields.end()) {
    return failAt(token_.position, "field \"" + std::string(token_.text) + "\" is defined twice");
  }
  Token name = take();
  Field field{std::string(name.text), std::move(name.comment), {}};
  if (first && !isAt(":")) {
    type.kind = Type::Kind::enumeration;
  }
  if (type.kind == Type::Kind::structure) {
    if (auto colon = expect(":"); !colon) {
      return colon;
    }
    auto fieldType = parseType(depth + 1);
    if (!fieldType) {
      return std::unexpected(std::move(fieldType.error()));
    }
    field.type = std::move(*fieldType);
  }
  type.fields.push_back(std::move(field));
  return {};
}

/// Lets every named type within `type` point at its definition.
Result<void> Parser::resolve(Type& type) {
  if (type.kind == Type::Kind::named) {
    const Reference& reference = references_[type.target];
    const auto found = std::ranges::find(interface_.types, reference.name, &TypeDefinition::name);
    if (found == interface_.types.end()) {
      return failAt(reference.position, "type \"" + std::string(reference.name) + "\" is not defined");
    }
    type.target = static_cast<std::size_t>(found - interface_.types.begin());
  }
  for (auto& field : type.fields) {
    if (auto resolved = resolve(field.type); !resolved) {
      return resolved;
    }
  }
  for (auto& element : type.element) {
    if (auto resolved = resolve(element); !resolved) {
      return resolved;
    }
  }
  return {};
}

Result<void> Parser::checkFinite() {
  for (std::size_t index = 0; index < interface_.types.size(); ++index) {
    std::vector<bool> seen(interface_.types.size());
    if (reaches(interface_.types[index].type, index, seen)) {
      return failAt(typePositions_[index], "type \"" + interface_.types[index].name + "\" contains itself");
    }
  }
  return {};
}

/// Whether each value of `type` has one of type `definition` in it.
bool Parser::reaches(const Type& type, std::size_t definition, std::vector<bool>& seen) const {
  if (type.nullable) {
    return false;
  }
  if (type.kind == Type::Kind::named) {
    if (type.target == definition) {
      return true;
    }
    if (seen[type.target]) {
      return false;
    }
    seen[type.target] = true;
    return reaches(interface_.types[type.target].type, definition, seen);
  }
  return std::ranges::any_of(type.fields, [&](const Field& field) { return reaches(field.type, definition, seen); });
}

bool Parser::namesDescriptor(const Type& type, std::vector<bool>& seen) const {
  if (type.kind == Type::Kind::named && !seen[type.target]) {
    seen[type.target] = true;
    return namesDescriptor(interface_.types[type.target].type, seen);
  }
  return std::ranges::any_of(type.element, [&](const Type& element) { return namesDescriptor(element, seen); }) ||
         std::ranges::any_of(type.fields, [&](const Field& field) {
           return field.name.ends_with("FileDescriptor") || field.name == "fileDescriptor" ||
                  namesDescriptor(field.type, seen);
         });
}

} // namespace

Result<Interface> parseInterface(std::string_view text) {
  return Parser(text).parse();
}

} // namespace btfd::varlink
