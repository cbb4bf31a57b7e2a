#pragma once

#include "config/config.h"
#include "job_submission.h"
#include "policy/policy.h"
#include "registry/registry.h"
#include "run_statistics.h"
#include "varlink/call.h"

namespace btfd::service {

/// io.btfd.Describe. For the io_context's thread.
class DescribeMethod {
 public:
  /// All of them must outlive it.
  DescribeMethod(const config::Config& config, const policy::Policy& policy, registry::Registry& registry,
                 JobSubmission& jobs, RunStatistics& statistics)
      : config_(config), policy_(policy), registry_(registry), jobs_(jobs), statistics_(statistics) {}

  void call(varlink::Call call);

 private:
  bool startCounting(varlink::Call& call, const registry::Object& object);
  void describeRelocations(varlink::Call call, const registry::Object& object, nlohmann::json described);

  const config::Config& config_;
  const policy::Policy& policy_;
  registry::Registry& registry_;
  JobSubmission& jobs_;
  RunStatistics& statistics_;
};

} // namespace btfd::service
