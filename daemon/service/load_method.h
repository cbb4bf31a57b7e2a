#pragma once

#include "config/config.h"
#include "event_bus.h"
#include "held_objects.h"
#include "image_cache.h"
#include "job_submission.h"
#include "kernel_btf.h"
#include "policy/policy.h"
#include "varlink/call.h"

#include <memory>

namespace btfd::service {

/// io.btfd.Load: from the request to the object that is held. For the io_context's thread.
class LoadMethod {
 public:
  /// All of them must outlive it.
  LoadMethod(const config::Config& config, const policy::Policy& policy, const KernelBtf& kernelBtf,
             HeldObjects& objects, JobSubmission& jobs, EventBus& events)
      : config_(config), policy_(policy), kernelBtf_(kernelBtf), objects_(objects), jobs_(jobs), events_(events) {}

  void call(varlink::Call call);

  /// Lets go of images that the configuration has no room for any more.
  void trimImages() { images_.trim(config_.cache.maxBytes); }

 private:
  struct Request;

  static loader::Outcome<void> checkDescription(const registry::Object& object, const Request& request);
  void guessImage(Request& request, Job& job);
  Result<void> takeImage(Request& request, const nlohmann::json& answer, registry::Object& object);
  void loaded(const std::shared_ptr<Request>& request, loader::ChannelMessage message);
  void makeFilters(const std::shared_ptr<Request>& request, registry::Object object, nlohmann::json verifierLogs);
  void record(const std::shared_ptr<Request>& request, registry::Object object, nlohmann::json verifierLogs);
  void failed(const std::shared_ptr<Request>& request, const loader::Failure& failure);
  void answerDryRun(const std::shared_ptr<Request>& request, registry::Object object, nlohmann::json verifierLogs);
  void undo(const std::shared_ptr<Request>& request, registry::Object object, loader::Failure failure);

  const config::Config& config_;
  const policy::Policy& policy_;
  const KernelBtf& kernelBtf_;
  HeldObjects& objects_;
  JobSubmission& jobs_;
  EventBus& events_;
  ImageCache images_;
};

} // namespace btfd::service
