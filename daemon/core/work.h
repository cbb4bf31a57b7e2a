#pragma once

#include <cstdint>

namespace btfd::core {

/// How much more may be done for one object: each step of each walk over types is paid for here, so that no object and
/// no kernel BTF, however made, takes more than a fraction of a second.
class Work {
 public:
  /// False once the allowance is used up.
  [[nodiscard]] bool spend(std::uint64_t steps = 1) {
    if (steps > left_) {
      left_ = 0;
      return false;
    }
    left_ -= steps;
    return true;
  }

  [[nodiscard]] std::uint64_t left() const { return left_; }

 private:
  /// Real objects take a few hundred steps for each different relocation, and the largest have thousands of those; a
  /// step takes a few nanoseconds.
  static constexpr std::uint64_t kSteps = 50'000'000;

  std::uint64_t left_ = kSteps;
};

} // namespace btfd::core
