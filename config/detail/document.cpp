#include "config/detail/document.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>

namespace btfd::config::detail {
namespace {

using nlohmann::json;

/// Walks over a text and says outside how far it has come. By hand, because nlohmann's SAX interface tells a position
/// with syntax errors only, and the positions in its values came with 3.12.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t& consumed) : at_(at), consumed_(&consumed) {}

  reference operator*() const { return *at_; }

  CountingIterator& operator++() {
    ++at_;
    ++*consumed_;
    return *this;
  }

  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  std::size_t* consumed_;
};

/// Escapes what is not printable ASCII, so that a message stays one line of valid text.
std::string printable(std::string_view text) {
  std::string escaped = json(text).dump(-1, ' ', true, json::error_handler_t::replace);
  return escaped.substr(1, escaped.size() - 2);
}

/// What is wrong in nlohmann's words, without its name of the exception and its own position.
std::string syntaxMessage(std::string_view what) {
  constexpr std::size_t kLongest = 200; // "last read" repeats the token, which can be as long as the file
  if (const auto end = what.find("] "); end != what.npos) {
    what.remove_prefix(end + 2);
  }
  if (const auto colon = what.find(": "); what.starts_with("parse error at ") && colon != what.npos) {
    what.remove_prefix(colon + 2);
  }
  std::string message(what.substr(0, kLongest));
  std::ranges::replace_if(message, [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return message;
}

/// Receives the parser's events and collects entries. Knows two levels, the top and the sections; what is below or in
/// lists is passed over, so nesting costs nothing.
class Collector final : public json::json_sax_t {
 public:
  Collector(std::string_view text, const std::size_t& consumed) : text_(text), consumed_(consumed) {}

  bool null() override { return add(nullptr); }

  bool boolean(bool value) override { return add(value); }

  bool number_integer(number_integer_t value) override { return add(value); }

  bool number_unsigned(number_unsigned_t value) override { return add(value); }

  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(value); }

  bool string(string_t& value) override { return add(std::move(value)); }

  bool binary(binary_t& /*value*/) override { return add(nullptr); } // never in JSON text

  bool start_object(std::size_t /*elements*/) override {
    if (passedOver_ == 0 && level_ < 2) {
      if (level_ == 1) {
        add(json::object());
        section_ = std::move(name_);
      }
      ++level_;
    } else {
      passOver(json::object());
    }
    return true;
  }

  bool end_object() override {
    if (passedOver_ > 0) {
      --passedOver_;
    } else if (--level_ == 1) {
      section_.clear();
    }
    return true;
  }

  bool start_array(std::size_t /*elements*/) override {
    passOver(json::array());
    return true;
  }

  bool end_array() override {
    --passedOver_;
    return true;
  }

  bool key(string_t& name) override {
    if (passedOver_ == 0) {
      name_ = std::move(name);
      position_ = positionAt(startOfKey());
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*lastToken*/, const json::exception& error) override {
    document_.problems.push_back({positionAt(position == 0 ? 0 : position - 1), syntaxMessage(error.what())});
    return false;
  }

  Document take() && { return std::move(document_); }

 private:
  bool add(json value) {
    if (passedOver_ > 0) {
      return true;
    }
    if (level_ == 0) {
      document_.problems.push_back({{}, "the configuration must be an object: { ... }"});
      return true;
    }
    const auto [first, isNew] = seen_.try_emplace({section_, name_}, position_);
    if (!isNew) {
      document_.problems.push_back({position_, keyPath(section_, name_) + ": is given twice, first in line " +
                                                   std::to_string(first->second.line)});
      return true;
    }
    document_.entries.push_back({section_, name_, position_, std::move(value)});
    return true;
  }

  void passOver(json emptyContainer) {
    add(std::move(emptyContainer));
    ++passedOver_;
  }

  /// The parser has just read the closing quote of a key; a quote within it has a backslash in front.
  std::size_t startOfKey() const {
    std::size_t at = consumed_ - 1;
    std::size_t backslashes = 0;
    do {
      at = text_.rfind('"', at - 1);
      backslashes = 0;
      while (backslashes < at && text_[at - 1 - backslashes] == '\\') {
        ++backslashes;
      }
    } while (backslashes % 2 == 1);
    return at;
  }

  /// Offsets rise from call to call (the text is read once, forwards), so lines are counted on from the last one.
  Position positionAt(std::size_t offset) {
    offset = std::min(offset, text_.size());
    for (; counted_ < offset; ++counted_) {
      if (text_[counted_] == '\n') {
        ++line_;
        lineStart_ = counted_ + 1;
      }
    }
    const std::string_view before = text_.substr(lineStart_, offset - lineStart_);
    const auto characters = std::ranges::count_if(before, [](char c) { return (c & 0xC0) != 0x80; });
    return {line_, static_cast<std::size_t>(characters) + 1};
  }

  std::string_view text_;
  const std::size_t& consumed_;
  Document document_;
  std::map<std::pair<std::string, std::string>, Position> seen_;

  std::size_t counted_ = 0;
  std::size_t line_ = 1;
  std::size_t lineStart_ = 0;

  /// Open objects: 0 none, 1 the top, 2 a section.
  int level_ = 0;
  /// Open lists and objects below those.
  std::size_t passedOver_ = 0;
  std::string section_;
  std::string name_;
  Position position_;
};

} // namespace

Document readDocument(std::string_view text) {
  std::size_t consumed = 0;
  Collector collector(text, consumed);
  std::size_t endIsNotCounted = 0;
  const bool complete = json::sax_parse(CountingIterator(text.data(), consumed),
                                        CountingIterator(text.data() + text.size(), endIsNotCounted), &collector,
                                        json::input_format_t::json, true, true);
  Document document = std::move(collector).take();
  document.complete = complete;
  return document;
}

std::string keyPath(std::string_view section, std::string_view name) {
  return section.empty() ? printable(name) : printable(section) + "." + printable(name);
}

} // namespace btfd::config::detail
