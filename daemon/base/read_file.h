#pragma once

#include "error.h"
#include "unique_fd.h"

#include <cstddef>
#include <limits>
#include <vector>

namespace btfd {

/// All of `file`, from its beginning. Not by its size alone: that of files in sysfs need not be true. Error code EFBIG:
/// it has more than `limit` bytes. The message goes on from the file's name: "cannot be read".
Result<std::vector<std::byte>> readAll(BorrowedFd file,
                                       std::size_t limit = std::numeric_limits<std::size_t>::max() - 1);

} // namespace btfd
