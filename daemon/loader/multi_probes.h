#pragma once

#include <bpf/libbpf.h>

#include <cstddef>

namespace btfd::loader {

// Links that carry probes of many functions: kernels before Linux 5.18 (kprobe.multi) and 6.6 (uprobe.multi), and those
// built without CONFIG_FPROBE, do not have them. There, each function gets a probe of its own.

/// Probes of single functions that one attachment may have: each is a perf event with descriptors of its own, here and
/// in the front.
constexpr std::size_t kMostSingleProbes = 500;

/// Whether this kernel has kprobe.multi links; true also where it does not let this process find out.
bool kernelHasKprobeMulti();

/// Whether this kernel has uprobe.multi links that are limited to a process as they should be (since Linux 6.10, and
/// in stable kernels); true also where it does not let this process find out.
bool kernelHasUprobeMulti();

/// Makes programs for links that this kernel does not have such that single probes can run them. To be called before
/// `object` is loaded.
void prepareForSingleProbes(struct bpf_object& object);

} // namespace btfd::loader
