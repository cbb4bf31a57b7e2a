#pragma once

#include <chrono>
#include <vector>

namespace btfd::bench {

using Clock = std::chrono::steady_clock;

/// Milliseconds since `start`.
double millisecondsSince(Clock::time_point start);

struct Percentiles {
  double p50 = 0;
  double p99 = 0;
};

/// By nearest rank. `samples` must not be empty.
Percentiles percentilesOf(std::vector<double> samples);

} // namespace btfd::bench
