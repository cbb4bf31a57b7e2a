#pragma once

#include "base/error.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace btfd::btfctl {

/// `text`, FIELD:VALUE,FIELD:VALUE with the fields of an io.btfd.MapRequest, as such a request. Errors say which field
/// is wrong.
Result<nlohmann::json> parseMapOptions(std::string_view text);

/// The same for an io.btfd.ProgramRequest.
Result<nlohmann::json> parseProgramOptions(std::string_view text);

/// The fields of both and what they mean, for --help.
std::string partOptionsHelp();

} // namespace btfd::btfctl
