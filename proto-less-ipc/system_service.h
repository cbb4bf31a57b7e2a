#pragma once

#include "base/error.h"

#include <functional>

namespace btfd::varlink {

class Service;

/// What the daemon does for io.systemd.service. All of these are set.
struct SystemServiceHooks {
  /// Reads the configuration again. Its error becomes io.systemd.service.ReloadFailed.
  std::function<Result<void>()> reload;
  /// Sets the log level, a syslog priority (0 to 7).
  std::function<void(int)> setLogLevel;
  /// The log level, a syslog priority (0 to 7).
  std::function<int()> logLevel;
};

/// Adds io.systemd.service to `service`. As in systemd's own services, Ping is for all, while the other methods are
/// refused (PermissionDenied) unless the caller is root or of the daemon's own user.
Result<void> addSystemService(Service& service, SystemServiceHooks hooks);

} // namespace btfd::varlink
