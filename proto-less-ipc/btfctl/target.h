#pragma once

#include "base/error.h"

#include <nlohmann/json.hpp>

#include <string_view>

namespace btfd::btfctl {

/// Reads where to attach a program, written as "key:value,key:value", and gives it as an AttachTarget of io.btfd.
///
/// A comma or backslash that is part of a value is written behind a backslash. Paths are made absolute, since the
/// daemon has another working directory; a network namespace without a slash is one of /run/netns. An empty text gives
/// an empty target: the program's section says it all. A mistake is an error that names the key and what it may be.
Result<nlohmann::json> parseTarget(std::string_view text);

/// The keys, one a line with their meaning, for --help.
std::string targetHelp();

} // namespace btfd::btfctl
