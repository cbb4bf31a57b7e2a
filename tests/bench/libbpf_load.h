#pragma once

#include "base/error.h"

#include <cstddef>
#include <span>
#include <string>

namespace btfd::bench {

/// Opens, loads and closes an object as every program with libbpf does it. The error has libbpf's own warnings in it.
Result<void> loadWithLibbpf(std::span<const std::byte> object);

} // namespace btfd::bench
