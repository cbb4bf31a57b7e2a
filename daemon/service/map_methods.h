#pragma once

#include "config/config.h"
#include "job_submission.h"
#include "policy/policy.h"
#include "registry/registry.h"
#include "varlink/call.h"

#include <string>

namespace btfd::service {

/// io.btfd.MapDump, MapLookup, MapUpdate and MapDelete. What they read is told by the object's BTF, which a client has
/// made, so a worker does it. For the io_context's thread.
class MapMethods {
 public:
  /// All of them must outlive it.
  MapMethods(const config::Config& config, const policy::Policy& policy, registry::Registry& registry,
             JobSubmission& jobs)
      : config_(config), policy_(policy), registry_(registry), jobs_(jobs) {}

  /// `method`: which of them.
  void call(const std::string& method, varlink::Call call);

 private:
  const config::Config& config_;
  const policy::Policy& policy_;
  registry::Registry& registry_;
  JobSubmission& jobs_;
};

} // namespace btfd::service
