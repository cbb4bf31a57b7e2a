#pragma once

#include "config/config.h"
#include "job_submission.h"
#include "varlink/call.h"

namespace btfd::service {

/// io.btfd.Check. For the io_context's thread.
class CheckMethod {
 public:
  /// All of them must outlive it.
  CheckMethod(const config::Config& config, JobSubmission& jobs) : config_(config), jobs_(jobs) {}

  void call(varlink::Call call);

 private:
  const config::Config& config_;
  JobSubmission& jobs_;
};

} // namespace btfd::service
