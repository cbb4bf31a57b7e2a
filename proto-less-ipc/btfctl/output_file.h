#pragma once

#include "base/error.h"

#include <cstddef>
#include <ostream>
#include <span>
#include <string>

namespace btfd::btfctl {

/// Whether `path` is the file at `other`, by whatever name. "-" is no file.
bool isSameFile(const std::string& path, const std::string& other);

/// Writes `content` to the file at `path`, which then has all of it, or, after an error, what it had before: it is
/// written under another name first, and replaces a file that is there, with that one's owner, group and mode as far as
/// this user may give them. Where a link leads to a file, that is replaced, and the link stays; a link that leads
/// nowhere is an error. What is no regular file, such as a FIFO, is written to as it is. "-" is `out`.
Result<void> writeOutput(const std::string& path, std::span<const std::byte> content, std::ostream& out);

} // namespace btfd::btfctl
