#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <functional>
#include <span>
#include <string>

namespace btfd::btfctl {

/// Why waiting ended.
enum class HoldEnd {
  /// SIGINT, SIGTERM or SIGHUP
  Signal,
  /// The daemon closed the connection.
  ConnectionLost,
};

/// Waits until a signal asks for the end or the daemon at the other end of `connection` goes.
///
/// While it waits those signals do not kill the process; afterwards they do again. For a process with one thread.
Result<HoldEnd> holdUntilEnd(BorrowedFd connection);

/// Runs `command` with BTFD_OBJECT set to `objectId` and waits for its end. Gives its exit status as a shell would: 128
/// and the signal's number if one killed it.
///
/// Signals sent to this process meanwhile are passed on; those that the terminal sends reach the command anyway. If the
/// daemon goes, `onConnectionLost` is called, and the command goes on. An error has the errno of posix_spawnp(3).
Result<int> runCommand(std::span<const std::string> command, const std::string& objectId, BorrowedFd connection,
                       const std::function<void()>& onConnectionLost);

} // namespace btfd::btfctl
