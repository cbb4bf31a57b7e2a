#include "btfctl/duration.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>

namespace btfd::btfctl {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t milliseconds;
};

constexpr std::array kUnits{Unit{"ms", 1}, Unit{"s", 1000}, Unit{"min", 60'000}, Unit{"h", 3'600'000}};

/// A day: nobody waits longer for a load, and sums of such parts stay far from overflow.
constexpr std::int64_t kLongestMs = 24 * 3'600'000LL;

std::unexpected<Error> notADuration(std::string_view text, std::string_view why) {
  return fail("'" + std::string(text) + "' is not a duration: " + std::string(why) +
              " (write it as 500ms, 10s, 2min or 1min30s)");
}

bool isDigit(char c) {
  return c >= '0' && c <= '9';
}

} // namespace

Result<std::chrono::milliseconds> parseDuration(std::string_view text) {
  std::int64_t total = 0;
  for (std::string_view rest = text; !rest.empty();) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error == std::errc::result_out_of_range || number > kLongestMs) {
      return notADuration(text, "the longest is 24h");
    }
    if (error != std::errc{} || !isDigit(rest.front())) {
      return notADuration(text, "it needs whole numbers with units");
    }
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));

    const auto unitEnd = std::ranges::find_if(rest, isDigit);
    const std::string_view name(rest.begin(), unitEnd);
    const auto* unit = std::ranges::find(kUnits, name, &Unit::name);
    if (unit == kUnits.end()) {
      return notADuration(text, name.empty() ? "the unit is missing" : "its unit is none of ms, s, min and h");
    }
    if (number > kLongestMs / unit->milliseconds || total + number * unit->milliseconds > kLongestMs) {
      return notADuration(text, "the longest is 24h");
    }
    total += number * unit->milliseconds;
    rest.remove_prefix(name.size());
  }
  if (total == 0) {
    return notADuration(text, text.empty() ? "it is empty" : "it must be more than zero");
  }
  return std::chrono::milliseconds(total);
}

} // namespace btfd::btfctl
