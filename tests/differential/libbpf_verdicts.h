#pragma once

#include "verdict.h"

#include <filesystem>

namespace btfd::differential {

/// libbpf's own verdicts on the object file at `path`, in this process. Nothing stays loaded or pinned.
ObjectVerdicts libbpfVerdicts(const std::filesystem::path& path);

} // namespace btfd::differential
