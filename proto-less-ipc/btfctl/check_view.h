#pragma once

#include "check/check_result.h"

#include <cstddef>
#include <string>
#include <vector>

namespace btfd::btfctl {

/// A name for each of `paths`: the one in `shortNames`, or the path where that is not the only one of its kind.
std::vector<std::string> distinctNames(const std::vector<std::string>& shortNames,
                                       const std::vector<std::string>& paths);

/// For people: the verdicts as a table, object by kernel, and the reasons below it, also those why an object could not
/// be read. With notes if `verbose`.
std::string checkView(const check::CheckResult& result, bool verbose, std::size_t width);

/// For people: what could not be read, a line each.
std::string unreadableView(const check::CheckResult& result);

} // namespace btfd::btfctl
