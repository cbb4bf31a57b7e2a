#pragma once

#include "base/error.h"

#include <cstdint>
#include <string>

namespace btfd::service {

/// The capabilities in effect for this process, a bit each (capabilities(7)).
Result<std::uint64_t> effectiveCapabilities();

/// Which of the capabilities that the daemon needs are not among `effective`, and what does not work without each;
/// empty if none is missing.
std::string missingCapabilities(std::uint64_t effective);

} // namespace btfd::service
