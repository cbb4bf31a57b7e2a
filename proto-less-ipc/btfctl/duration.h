#pragma once

#include "base/error.h"

#include <chrono>
#include <string_view>

namespace btfd::btfctl {

/// Reads a duration such as "500ms", "10s", "2min" or "1min30s": whole numbers, each with its unit (ms, s, min, h).
///
/// A number without a unit is an error, since what it means would be a guess; so is a duration of zero.
Result<std::chrono::milliseconds> parseDuration(std::string_view text);

} // namespace btfd::btfctl
