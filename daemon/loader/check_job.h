#pragma once

#include "descriptors.h"
#include "failure.h"
#include "job.h"

#include <nlohmann/json.hpp>

namespace btfd::loader {

/// Checks objects by kernels for io.btfd.Check. Nothing is loaded.
///
/// `request`: "parameters" as the client sent them. Without kernels among them, the one whose BTF this process was lent
/// is meant; io.btfd.NoKernelBtf if it was lent none. The answer's body is that of the method.
Outcome<JobReply> runCheckJob(const nlohmann::json& request, RequestDescriptors& descriptors, const JobLimits& limits);

} // namespace btfd::loader
