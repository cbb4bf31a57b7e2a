#include "probe_section.h"

#include <charconv>
#include <system_error>

namespace btfd::loader {

namespace {

/// A number in decimal or, behind 0x, in hexadecimal.
std::optional<std::uint64_t> readNumber(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x");
  text.remove_prefix(hexadecimal ? 2 : 0);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, hexadecimal ? 16 : 10);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

} // namespace

ProbeSection::ProbeSection(std::string_view section) {
  const auto slash = section.find('/');
  kind = section.substr(0, slash);
  target = slash == std::string_view::npos ? std::string_view{} : section.substr(slash + 1);
}

bool ProbeSection::isForUserSpace() const {
  return kind.starts_with('u');
}

bool ProbeSection::isForReturns() const {
  return kind.starts_with("kret") || kind.starts_with("uret");
}

std::string ProbeSection::singleKind() const {
  const std::string_view whole = kind;
  const auto dot = whole.find('.');
  return std::string(whole.substr(0, dot)) + (whole.ends_with(".s") ? ".s" : "");
}

std::optional<FunctionOffset> readFunctionOffset(std::string_view text) {
  const auto plus = text.rfind('+');
  if (plus == std::string_view::npos) {
    const auto number = readNumber(text);
    return number ? FunctionOffset{.function = {}, .offset = *number}
                  : FunctionOffset{.function = std::string(text), .offset = 0};
  }
  const auto offset = readNumber(text.substr(plus + 1));
  if (!offset) {
    return std::nullopt;
  }
  return FunctionOffset{.function = std::string(text.substr(0, plus)), .offset = *offset};
}

} // namespace btfd::loader
