#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "check/object_to_check.h"

#include <string>

namespace btfd::btfctl {

/// Opens an object file for the daemon; "-" is standard input.
///
/// Gives a memfd with a copy of it that nobody can change any more (sealed), or, for a file of more than 64 MiB, the
/// file itself. Standard input must not be larger than that. Errors name the file.
Result<UniqueFd> openObject(const std::string& path);

/// Opens one, and takes it apart to be looked at here. Errors name the file.
Result<check::ObjectToCheck> readObject(const std::string& path);

} // namespace btfd::btfctl
