#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace btfd::varlink::detail {

/// Where something stands in a text: both count from 1, columns in bytes.
struct Position {
  std::size_t line = 1;
  std::size_t column = 1;
};

/// A piece of an interface's text.
struct Token {
  enum class Kind {
    word,        ///< A name or keyword; also an interface's name with its dots and dashes.
    punctuation, ///< One of ( ) [ ] , : ? or "->".
    invalid,     ///< A character that has no place outside of comments.
    end,
  };

  Kind kind = Kind::end;
  std::string_view text;
  Position position;
  /// The comment lines directly before it, without "# "; a blank line in between cuts them off.
  std::string comment;
};

/// Cuts an interface's text into tokens.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Token next();

 private:
  [[nodiscard]] bool atEnd() const { return offset_ >= text_.size(); }

  [[nodiscard]] char current() const { return text_[offset_]; }

  void advance();
  std::string skipSpaceAndComments();
  std::string_view takeLine();

  std::string_view text_;
  std::size_t offset_ = 0;
  Position position_;
};

} // namespace btfd::varlink::detail
