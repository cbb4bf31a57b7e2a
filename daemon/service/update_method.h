#pragma once

#include "config/config.h"
#include "event_bus.h"
#include "held_objects.h"
#include "policy/policy.h"
#include "varlink/call.h"
#include "worker_pool.h"

#include <memory>

namespace btfd::service {

/// io.btfd.Update: a link runs another program, and belongs to that one's object then. For the io_context's thread.
class UpdateMethod {
 public:
  /// All of them must outlive it.
  UpdateMethod(const config::Config& config, const policy::Policy& policy, HeldObjects& objects, WorkerPool& workers,
               EventBus& events)
      : config_(config), policy_(policy), objects_(objects), workers_(workers), events_(events) {}

  void call(varlink::Call call);

 private:
  struct Request;

  registry::Link* findLink(std::uint64_t id);
  loader::Outcome<void> begin(const std::shared_ptr<Request>& request);
  loader::Outcome<void> updateLink(const std::shared_ptr<Request>& request, const registry::Link& link);
  loader::Outcome<void> replaceFilter(const std::shared_ptr<Request>& request);
  void finished(const std::shared_ptr<Request>& request, const loader::Outcome<void>& outcome);
  void updated(const std::shared_ptr<Request>& request);

  const config::Config& config_;
  const policy::Policy& policy_;
  HeldObjects& objects_;
  WorkerPool& workers_;
  EventBus& events_;
};

} // namespace btfd::service
