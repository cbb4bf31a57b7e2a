#include "read_file.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

namespace btfd {

Result<std::vector<std::byte>> readAll(BorrowedFd file, std::size_t limit) {
  constexpr std::size_t kChunk = std::size_t{1} << 20U;
  struct stat status{};
  std::size_t expected = kChunk;
  if (::fstat(file.get(), &status) == 0 && status.st_size > 0) {
    expected = std::min(limit, static_cast<std::size_t>(status.st_size)) + 1;
  }
  std::vector<std::byte> content(expected);
  std::size_t used = 0;
  while (true) {
    const ssize_t got = ::pread(file.get(), content.data() + used, content.size() - used, static_cast<off_t>(used));
    if (got < 0 && errno != EINTR) {
      return failErrno("cannot be read", errno);
    }
    if (got == 0) {
      content.resize(used);
      return content;
    }
    used += got < 0 ? 0 : static_cast<std::size_t>(got);
    if (used > limit) {
      return fail("has more than " + std::to_string(limit) + " bytes", EFBIG);
    }
    if (used == content.size()) {
      content.resize(std::min(limit, used + std::max(kChunk, used / 2)) + 1);
    }
  }
}

} // namespace btfd
