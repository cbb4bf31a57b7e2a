#pragma once

#include "base/unique_fd.h"
#include "btf/kernel_spec.h"
#include "job.h"
#include "seam.h"

#include <memory>

namespace btfd::loader {

/// What a worker is given when it is forked.
struct WorkerSetup {
  KernelSpecState kernelSpecState = KernelSpecState::unavailable;
  std::shared_ptr<const btf::KernelSpec> kernelSpec;
  JobLimits limits;
};

/// The whole life of a worker, in the child process of a fork: takes one job at a time from `channel` and answers it,
/// until the front closes the channel. Closes every other descriptor but standard error before the first job, and after
/// each job whatever is left of it. Never returns.
///
/// A job is a ChannelMessage with "ofClient", how many of its descriptors are the client's, if not all, and "job":
/// "load", "attach", "check", "describe" or "release" (see load_job.h, attach_job.h, check_job.h, describe_job.h). Its
/// answer has either the body of that job or "error" and "parameters", a Varlink error.
[[noreturn]] void runWorker(UniqueFd channel, const WorkerSetup& setup);

} // namespace btfd::loader
