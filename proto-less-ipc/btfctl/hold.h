#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "btfctl/signal_queue.h"

#include <functional>
#include <span>
#include <string>

namespace btfd::btfctl {

/// Why waiting ended.
enum class HoldEnd {
  /// One of those that SignalQueue takes.
  Signal,
  /// The daemon closed the connection.
  ConnectionLost,
};

/// Waits until one of `signals` asks for the end or the daemon at the other end of `connection` goes. Afterwards
/// signals kill the process again.
Result<HoldEnd> holdUntilEnd(SignalQueue signals, BorrowedFd connection);

/// Runs `command` with BTFD_OBJECT set to `objectId` and waits for its end. Gives its exit status as a shell would: 128
/// and the signal's number if one killed it.
///
/// `signals` that were sent to this process are passed on; those that the terminal sends reach the command anyway. If
/// the daemon goes, `onConnectionLost` is called, and the command goes on. An error has the errno of posix_spawnp(3).
Result<int> runCommand(SignalQueue signals, std::span<const std::string> command, const std::string& objectId,
                       BorrowedFd connection, const std::function<void()>& onConnectionLost);

} // namespace btfd::btfctl
