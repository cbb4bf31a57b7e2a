#include "closers.h"

namespace btfd {

Closer& Closers::ofUser(uid_t user) {
  Closer& closer = ofUsers_.try_emplace(user, kThreadsPerUser).first->second;
  if (!closer.started() && !closer.start()) {
    return sockets_; // without descriptors for a pipe, better than to close in place
  }
  return closer;
}

} // namespace btfd
