#include "varlink/interface_lexer.h"

namespace btfd::varlink::detail {

namespace {

bool isWordCharacter(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
         (character >= '0' && character <= '9') || character == '_' || character == '.' || character == '-';
}

} // namespace

Token Lexer::next() {
  Token token;
  token.comment = skipSpaceAndComments();
  token.position = position_;
  if (atEnd()) {
    return token;
  }
  const std::size_t start = offset_;
  const bool arrow = text_.substr(offset_).starts_with("->");
  if (arrow) {
    token.kind = Token::Kind::punctuation;
    advance();
    advance();
  } else if (isWordCharacter(current())) {
    token.kind = Token::Kind::word;
    while (!atEnd() && isWordCharacter(current()) && !text_.substr(offset_).starts_with("->")) {
      advance();
    }
  } else {
    const bool known = std::string_view("()[],:?").contains(current());
    token.kind = known ? Token::Kind::punctuation : Token::Kind::invalid;
    advance();
  }
  token.text = text_.substr(start, offset_ - start);
  return token;
}

void Lexer::advance() {
  if (current() == '\n') {
    ++position_.line;
    position_.column = 1;
  } else {
    ++position_.column;
  }
  ++offset_;
}

std::string Lexer::skipSpaceAndComments() {
  std::string comment;
  std::size_t newlines = 0;
  while (!atEnd()) {
    const char character = current();
    if (character == '#') {
      std::string_view line = takeLine();
      line.remove_prefix(line.starts_with("# ") ? 2 : 1);
      if (newlines > 1) {
        comment.clear();
      }
      newlines = 0;
      if (!comment.empty()) {
        comment.push_back('\n');
      }
      comment.append(line);
    } else if (character == ' ' || character == '\t' || character == '\r' || character == '\n') {
      newlines += character == '\n' ? 1 : 0;
      advance();
    } else {
      break;
    }
  }
  if (newlines > 1) {
    comment.clear();
  }
  return comment;
}

std::string_view Lexer::takeLine() {
  const std::size_t start = offset_;
  while (!atEnd() && current() != '\n') {
    advance();
  }
  std::string_view line = text_.substr(start, offset_ - start);
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  return line;
}

} // namespace btfd::varlink::detail
