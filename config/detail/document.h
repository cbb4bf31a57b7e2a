#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// First step of reading a configuration: from text to keys and values that know where they stand.
namespace btfd::config::detail {

/// A place in the text, both counted from 1; columns in characters.
struct Position {
  std::size_t line = 1;
  std::size_t column = 1;

  auto operator<=>(const Position&) const = default;
};

/// One key with its value, at the top ("stateDirectory", no section) or in a section ("limits", "deadlineMs").
struct Entry {
  std::string section;
  std::string name;
  /// Where the key begins.
  Position position;
  /// A list or an object stands here as an empty one: no key takes their contents.
  nlohmann::json value;
};

/// Something wrong, and where.
struct Problem {
  Position position;
  std::string text;

  auto operator<=>(const Problem&) const = default;
};

struct Document {
  std::vector<Entry> entries;
  /// Syntax errors, keys that are given twice, and a text that is not an object.
  std::vector<Problem> problems;
  /// The text was read to its end.
  bool complete = false;
};

/// Reads `text`, JSON with `//` and `/* */` comments. A section is an entry, too, in front of those in it.
Document readDocument(std::string_view text);

/// "section.name", or "name" where there is no section; what is not printable ASCII is escaped.
std::string keyPath(std::string_view section, std::string_view name);

} // namespace btfd::config::detail
