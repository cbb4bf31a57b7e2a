#pragma once

#include "btfctl/command.h"
#include "btfctl/outcome.h"
#include "check/kernels.h"

#include <nlohmann/json.hpp>

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

/// Says what has been written to `output` for `kernel`: `text` for people, beside the output if that is standard
/// output; `document`, to which both are added, for programs.
void reportWritten(const Context& context, const std::string& output, const ChosenKernel& kernel,
                   nlohmann::json document, const std::string& text);

} // namespace btfd::btfctl
