#pragma once

#include "config/config.h"
#include "job_submission.h"
#include "registry/registry.h"
#include "varlink/call.h"

namespace btfd::service {

/// io.btfd.Describe. For the io_context's thread.
class DescribeMethod {
 public:
  /// All of them must outlive it.
  DescribeMethod(const config::Config& config, registry::Registry& registry, JobSubmission& jobs)
      : config_(config), registry_(registry), jobs_(jobs) {}

  void call(varlink::Call call);

 private:
  void describeRelocations(varlink::Call call, const registry::Object& object);

  const config::Config& config_;
  registry::Registry& registry_;
  JobSubmission& jobs_;
};

} // namespace btfd::service
