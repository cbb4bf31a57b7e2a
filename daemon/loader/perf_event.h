#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace btfd::loader {

/// Perf events opened for one attachment, and what they count, in words.
struct OpenedPerfEvents {
  std::vector<UniqueFd> descriptors;
  std::string description;
};

/// Opens an io.btfd.PerfEvent on its CPU, or on each CPU that is online. Error code EINVAL is for a request that names
/// no event; any other is the kernel's.
Result<OpenedPerfEvents> openPerfEvents(const nlohmann::json& event);

} // namespace btfd::loader
