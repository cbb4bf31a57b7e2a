#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace btfd {

/// What text has at some place.
struct Character {
  std::size_t bytes = 1;
  /// Whether it may stand in a log or on a terminal as it is. Not: control characters, which move the cursor and more;
  /// Unicode's format characters, which have no width or turn the direction of what follows, so that a text passes for
  /// another; what is no UTF-8.
  bool showable = false;
};

/// The character of UTF-8 `text` at `at`, which is less than its size.
Character characterAt(std::string_view text, std::size_t at);

/// Whether all of the text may be shown as it is.
bool isShowable(std::string_view text);

/// `text` with what may not be shown as \xNN, byte by byte.
std::string escaped(std::string_view text);

/// The same; what takes more than `longest` bytes is cut, and ends in "...".
std::string showable(std::string_view text, std::size_t longest);

/// Two hexadecimal digits, in lower case, for each byte.
std::string toHex(std::span<const std::byte> bytes);

/// The words with ", " between each two.
template <typename Words>
std::string joined(const Words& words) {
  std::string text;
  for (const auto& word : words) {
    text += (text.empty() ? "" : ", ") + std::string(word);
  }
  return text;
}

/// A name as messages have it: whoever makes objects can make names of any length.
std::string shown(std::string_view name);

/// The same in single quotes.
std::string quotedName(std::string_view name);

/// Puts the bytes at the end of `out`, as \xNN each.
void appendEscaped(std::string& out, std::string_view bytes);

} // namespace btfd
