#pragma once

#include "config/config.h"
#include "job_submission.h"
#include "policy/policy.h"
#include "registry/registry.h"
#include "varlink/call.h"

#include <memory>

namespace btfd::service {

/// io.btfd.Read: what an iterator's program prints. Reading runs it, so workers do that, a piece at a time. For the
/// io_context's thread.
class ReadMethod {
 public:
  /// All of them must outlive it.
  ReadMethod(const config::Config& config, const policy::Policy& policy, registry::Registry& registry,
             JobSubmission& jobs)
      : config_(config), policy_(policy), registry_(registry), jobs_(jobs) {}

  void call(varlink::Call call);

 private:
  struct Stream;

  void goOn(const std::shared_ptr<Stream>& stream);
  void got(const std::shared_ptr<Stream>& stream, loader::ChannelMessage message);
  void send(const std::shared_ptr<Stream>& stream);

  const config::Config& config_;
  const policy::Policy& policy_;
  registry::Registry& registry_;
  JobSubmission& jobs_;
};

} // namespace btfd::service
