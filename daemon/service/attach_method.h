#pragma once

#include "config/config.h"
#include "event_bus.h"
#include "held_objects.h"
#include "job_submission.h"
#include "policy/policy.h"
#include "varlink/call.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>

namespace btfd::service {

/// io.btfd.Attach: from the request to the link that is held. For the io_context's thread.
class AttachMethod {
 public:
  /// All of them must outlive it.
  AttachMethod(const config::Config& config, const policy::Policy& policy, HeldObjects& objects, JobSubmission& jobs,
               EventBus& events)
      : config_(config), policy_(policy), objects_(objects), jobs_(jobs), events_(events) {}

  void call(varlink::Call call);

 private:
  struct Request;

  /// Gives the request's job to a worker; for USDT, once no other is about the same object: each has to know which
  /// specifications are in use, and what an attachment takes is known when it is there.
  void submit(const std::shared_ptr<Request>& request);
  void start(const std::shared_ptr<Request>& request);
  void ended(const Request& request);

  void attached(const std::shared_ptr<Request>& request, loader::ChannelMessage message);
  void makeFilter(const std::shared_ptr<Request>& request, registry::Link link);
  void record(const std::shared_ptr<Request>& request, registry::Link link);
  void failed(const std::shared_ptr<Request>& request, const loader::Failure& failure);
  void undo(const std::shared_ptr<Request>& request, registry::Link link, loader::Failure failure);

  const config::Config& config_;
  const policy::Policy& policy_;
  HeldObjects& objects_;
  JobSubmission& jobs_;
  EventBus& events_;
  /// By object: those that wait for the one that is under way.
  std::map<std::uint64_t, std::deque<std::shared_ptr<Request>>> usdt_;
};

} // namespace btfd::service
