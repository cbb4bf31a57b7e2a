#include "statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace btfd::bench {

double millisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Percentiles percentilesOf(std::vector<double> samples) {
  std::ranges::sort(samples);
  const auto rank = [&](double part) {
    const auto count = static_cast<std::size_t>(std::ceil(part * static_cast<double>(samples.size())));
    return samples[std::max<std::size_t>(count, 1) - 1];
  };
  return {.p50 = rank(0.50), .p99 = rank(0.99)};
}

} // namespace btfd::bench
