#pragma once

#include "error.h"
#include "unique_fd.h"

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>

namespace btfd {

/// A memfd called `name` in /proc that holds `content` and is sealed: nobody who gets it can change, shorten or
/// lengthen it, nor take the seals off (F_ADD_SEALS of fcntl(2)). Close-on-exec; its file position is at its end.
Result<UniqueFd> sealedMemfd(const std::string& name, std::span<const std::byte> content);

/// The same with all of `parts`, one behind the other.
Result<UniqueFd> sealedMemfd(const std::string& name, std::initializer_list<std::span<const std::byte>> parts);

/// Whether `file` is a memfd whose content and size nobody can change any more.
bool isSealed(BorrowedFd file);

} // namespace btfd
