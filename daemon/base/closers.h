#pragma once

#include "closer.h"

#include <map>

#include <sys/types.h>

namespace btfd {

/// The Closers of a service, so that the closes of one client hold up no other's. For one thread.
class Closers {
 public:
  Result<void> start() { return sockets_.start(); }

  /// For the service's own sockets, in which descriptors of clients may lie. The kernel drops those without FLUSH, so
  /// each such close ends.
  Closer& forSockets() { return sockets_; }

  /// For the descriptors that a user has sent.
  Closer& ofUser(uid_t user);

 private:
  static constexpr std::size_t kThreadsPerUser = 8;

  Closer sockets_;
  std::map<uid_t, Closer> ofUsers_;
};

} // namespace btfd
