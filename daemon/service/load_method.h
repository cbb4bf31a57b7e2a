#pragma once

#include "config/config.h"
#include "event_bus.h"
#include "held_objects.h"
#include "job_submission.h"
#include "varlink/call.h"

#include <memory>

namespace btfd::service {

/// io.btfd.Load: from the request to the object that is held. For the io_context's thread.
class LoadMethod {
 public:
  /// All of them must outlive it.
  LoadMethod(const config::Config& config, HeldObjects& objects, JobSubmission& jobs, EventBus& events)
      : config_(config), objects_(objects), jobs_(jobs), events_(events) {}

  void call(varlink::Call call);

 private:
  struct Request;

  static loader::Outcome<void> checkDescription(const registry::Object& object, const Request& request);
  void loaded(const std::shared_ptr<Request>& request, loader::ChannelMessage message);
  void failed(const std::shared_ptr<Request>& request, const loader::Failure& failure);
  void answerDryRun(const std::shared_ptr<Request>& request, registry::Object object, nlohmann::json verifierLogs);
  void undo(const std::shared_ptr<Request>& request, registry::Object object, loader::Failure failure);

  const config::Config& config_;
  HeldObjects& objects_;
  JobSubmission& jobs_;
  EventBus& events_;
};

} // namespace btfd::service
