#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "btf/kernel_spec.h"

#include <memory>

namespace btfd::bench {

/// The CO-RE engine alone, in this process, against a spec that is resident.
class EngineRun {
 public:
  /// Builds the spec of the running kernel.
  static Result<EngineRun> prepare();

  /// Reads the CO-RE records of the object in `file` and applies them to a copy; milliseconds from the checked file to
  /// the patched instructions.
  [[nodiscard]] Result<double> turn(BorrowedFd file) const;

 private:
  explicit EngineRun(std::shared_ptr<const btf::KernelSpec> spec) : spec_(std::move(spec)) {}

  std::shared_ptr<const btf::KernelSpec> spec_;
};

} // namespace btfd::bench
