#pragma once

#include <string>

namespace btfd::bench {

/// Where a measurement was made.
struct Machine {
  std::string cpu;
  unsigned int cores;
  std::string kernel;
  /// UTC, ISO 8601.
  std::string date;
  std::string libbpf;
};

Machine describeMachine();

} // namespace btfd::bench
