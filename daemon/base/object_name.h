#pragma once

#include "unique_fd.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace btfd {

/// Bytes of an object's name: what people read in tables and logs, and select by. Longer texts belong elsewhere.
inline constexpr std::size_t kMaximumObjectName = 64;

/// What to call an object that nobody has named: its file's name without ".bpf.o" or ".o". Empty if that is too long or
/// may not be shown (isShowable).
std::string objectName(std::string_view path);

/// The same of an open file, or of a memfd's name.
std::string objectName(BorrowedFd file);

} // namespace btfd
