#pragma once

#include "btfctl/outcome.h"
#include "check/kernels.h"

#include <memory>
#include <string>
#include <vector>

namespace btfd::btfctl {

/// The one kernel that a command is about.
struct ChosenKernel {
  /// Where its BTF was read.
  std::string path;
  std::shared_ptr<const check::TargetKernel> kernel;
  /// Modules that were left out, each with its reason.
  std::vector<Error> leftOut;
};

/// The kernel at `path`, as `btfctl check --kernel` takes it; if that is empty, the running one. A failure, with exit
/// status 2, if it cannot be read, if there are several, or if its BTF is what would be written over: `output`.
Outcome<ChosenKernel> chooseKernel(const std::string& path, const std::string& output);

/// As JSON documents describe it.
nlohmann::json toJson(const ChosenKernel& kernel);

} // namespace btfd::btfctl
