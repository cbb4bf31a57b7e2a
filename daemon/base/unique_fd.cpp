#include "unique_fd.h"

#include "closer.h"

#include <fcntl.h>

namespace btfd {

void UniqueFd::closeElsewhere() noexcept {
  closer_->close(fd_);
}

UniqueFd BorrowedFd::duplicate() const {
  // Not below 3, where others look for the standard streams.
  return UniqueFd(::fcntl(fd_, F_DUPFD_CLOEXEC, 3), closer_);
}

} // namespace btfd
