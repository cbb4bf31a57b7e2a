#pragma once

#include "base/error.h"
#include "config/config.h"

#include <string>

namespace btfd {

/// Sends spdlog's default logger where the configuration says.
Result<void> setUpLog(const config::Config::Log& log);

/// Sets the level by one of spdlog's names.
void setLogLevel(const std::string& name);

/// The level as a syslog priority (syslog(3), 0 to 7), as io.systemd.service wants it.
int logPriority();
void setLogPriority(int priority);

} // namespace btfd
