#pragma once

#include "base/error.h"

#include <nlohmann/json.hpp>

#include <expected>
#include <string>
#include <string_view>

namespace btfd::btfctl {

/// What btfctl's exit status tells a script. With `load --exec` the status is the command's own.
enum class ExitStatus : int {
  Done = 0,
  /// The daemon refused, or the operation failed.
  Failed = 1,
  /// The command line is wrong; nothing was asked of the daemon.
  Usage = 2,
  /// The daemon cannot be reached, or went away before it answered.
  Unreachable = 3,
  /// No such object, link, program, map or variable, or an object that is held was unloaded by somebody.
  NotFound = 4,
  /// Not allowed: policy, another user's object, or the socket's file mode.
  Denied = 5,
  /// Deadline exceeded, worker lost or daemon busy: the same request may succeed later.
  TryAgain = 6,
};

/// The exit status for Varlink error `name`, such as "io.btfd.NotOwner". Unknown names give Failed.
ExitStatus exitStatusOf(std::string_view name);

/// The table of exit statuses, for --help.
std::string exitStatusHelp();

/// Why a command did not do what it was asked.
struct Failure {
  ExitStatus status = ExitStatus::Failed;
  /// The Varlink error's name, or "btfctl.Usage", "btfctl.Unreachable" and the like for what btfctl itself found.
  std::string name;
  /// The error's fields. "message" says it in words, where the error has one.
  nlohmann::json parameters;
};

template <typename T>
using Outcome = std::expected<T, Failure>;

/// A failure that the daemon reported.
std::unexpected<Failure> refused(std::string name, nlohmann::json parameters);

/// A failure that btfctl found itself.
std::unexpected<Failure> failed(ExitStatus status, std::string message);

/// A mistake in the command line.
inline std::unexpected<Failure> misused(const Error& error) {
  return failed(ExitStatus::Usage, error.message);
}

} // namespace btfd::btfctl
