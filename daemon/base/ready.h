#pragma once

#include "unique_fd.h"

#include <poll.h>

namespace btfd {

/// Whether poll(2) says now that one of `events`, an error or a hang-up is there for `descriptor`. Does not wait.
///
/// What Asio's async_wait says is a hint only: its epoll reactor gives the state of a descriptor that was just closed
/// to the next one that is registered, together with events that still wait to be looked at (Boost 1.81). Whoever acts
/// on the event itself, without reading or writing next, has to ask.
inline bool isReady(BorrowedFd descriptor, short events) {
  pollfd polled{.fd = descriptor.get(), .events = events, .revents = 0};
  return ::poll(&polled, 1, 0) == 1;
}

} // namespace btfd
