#pragma once

#include "config/config.h"
#include "job_submission.h"
#include "policy/policy.h"
#include "registry/registry.h"
#include "varlink/call.h"

#include <functional>
#include <string>

namespace btfd::service {

/// io.btfd.GetBtf and Disassemble: what a worker finds in the file of a loaded object, which a client has made. For the
/// io_context's thread.
class ImageMethods {
 public:
  /// All of them must outlive it.
  ImageMethods(const config::Config& config, const policy::Policy& policy, registry::Registry& registry,
               JobSubmission& jobs)
      : config_(config), policy_(policy), registry_(registry), jobs_(jobs) {}

  void getBtf(varlink::Call call);
  void disassemble(varlink::Call call);

 private:
  void submit(const std::string& job, varlink::Call call,
              std::function<void(varlink::Call&, loader::ChannelMessage&)> done);

  const config::Config& config_;
  const policy::Policy& policy_;
  registry::Registry& registry_;
  JobSubmission& jobs_;
};

} // namespace btfd::service
