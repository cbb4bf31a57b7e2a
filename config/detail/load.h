#pragma once

#include "config/config.h"

#include <string>

namespace btfd::config::detail {

/// What it means that a configuration file is not there.
enum class Missing { IsAnError, MeansDefaults };

/// load() of a file that has a name.
Result<Config> loadFile(const std::string& path, Missing missing);

} // namespace btfd::config::detail
