#pragma once

#include "config/config.h"
#include "job_submission.h"
#include "policy/policy.h"
#include "registry/registry.h"
#include "varlink/call.h"

namespace btfd::service {

/// io.btfd.GetBtf: a worker takes it out of the object, which a client has made. For the io_context's thread.
class BtfMethod {
 public:
  /// All of them must outlive it.
  BtfMethod(const config::Config& config, const policy::Policy& policy, registry::Registry& registry,
            JobSubmission& jobs)
      : config_(config), policy_(policy), registry_(registry), jobs_(jobs) {}

  void call(varlink::Call call);

 private:
  const config::Config& config_;
  const policy::Policy& policy_;
  registry::Registry& registry_;
  JobSubmission& jobs_;
};

} // namespace btfd::service
