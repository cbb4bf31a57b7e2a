#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "btfctl/object_watch.h"
#include "btfctl/signal_queue.h"

#include <functional>
#include <optional>
#include <span>
#include <string>

namespace btfd::btfctl {

/// Why waiting ended.
enum class HoldEnd {
  /// One of those that SignalQueue takes.
  Signal,
  /// The daemon closed the connection.
  ConnectionLost,
  /// Somebody unloaded the object.
  Unloaded,
};

/// Waits until one of `signals` asks for the end, the daemon at the other end of `connection` goes, or `watch`, if
/// there is one, sees the object go. Afterwards signals kill the process again.
Result<HoldEnd> holdUntilEnd(SignalQueue signals, BorrowedFd connection, std::optional<ObjectWatch>& watch);

/// Runs `command` with BTFD_OBJECT set to `objectId` and waits for its end. Gives its exit status as a shell would: 128
/// and the signal's number if one killed it.
///
/// `signals` that were sent to this process are passed on; those that the terminal sends reach the command anyway. If
/// the object goes, `onObjectGone` is called, and the command goes on. An error has the errno of posix_spawnp(3).
Result<int> runCommand(SignalQueue signals, std::span<const std::string> command, const std::string& objectId,
                       BorrowedFd connection, std::optional<ObjectWatch>& watch,
                       const std::function<void(HoldEnd)>& onObjectGone);

} // namespace btfd::btfctl
