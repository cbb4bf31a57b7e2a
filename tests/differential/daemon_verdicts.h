#pragma once

#include "base/error.h"
#include "varlink/client.h"
#include "verdict.h"

#include <filesystem>
#include <string>
#include <vector>

namespace btfd::differential {

/// A daemon's verdicts on the object file at `path`, each program of `programs` also loaded alone. Every object is
/// unloaded again. An error if the connection fails or the file cannot be read.
Result<ObjectVerdicts> daemonVerdicts(varlink::Client& client, const std::filesystem::path& path,
                                      const std::vector<std::string>& programs);

} // namespace btfd::differential
