#pragma once

#include "base/error.h"
#include "target_kernel.h"

#include <memory>
#include <string>
#include <vector>

namespace btfd::check {

/// A kernel that was found, or a file of which none could be made.
struct FoundKernel {
  /// The file.
  std::string path;
  Result<std::shared_ptr<const TargetKernel>> kernel;
  /// Modules that were left out, each with its reason.
  std::vector<Error> leftOut;
};

/// What the running kernel is called: "running (6.12.5)".
std::string runningKernelName();

/// Where the running kernel shows its BTF and that of its modules.
inline constexpr const char* kRunningKernel = "/sys/kernel/btf";

/// The kernels at `path`: one in a file (see readBtf), or all those in a directory: files vmlinux, *.btf, *.btf.gz and
/// *.btf.xz, and whatever begins as BTF does; also in directories below, some levels deep, but not behind links to
/// directories. Split BTFs and modules (*.ko) beside a kernel belong to it, and so do those in directories below that
/// have no kernel of their own. What is broken is an error of its file, and what cannot be read of a directory one of
/// its own; the others are read all the same.
std::vector<FoundKernel> findKernels(const std::string& path);

} // namespace btfd::check
