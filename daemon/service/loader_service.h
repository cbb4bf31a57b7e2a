#pragma once

#include "config/config.h"
#include "event_bus.h"
#include "kernel_btf.h"
#include "pins.h"
#include "policy/policy.h"
#include "registry/registry.h"
#include "varlink/call.h"
#include "varlink/service.h"
#include "worker_pool.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace btfd::service {

/// The methods of io.btfd: checks a request, asks the policy, gives the job to a worker, records what came of it,
/// answers. For the io_context's thread.
class LoaderService {
 public:
  struct Parts {
    const config::Config& config;
    const policy::Policy& policy;
    WorkerPool& workers;
    KernelBtf& kernelBtf;
    EventBus& events;
  };

  explicit LoaderService(Parts parts);

  /// Gives the methods of io.btfd to `service`.
  void addTo(varlink::Service& service);

  /// Ends what lives as long as the connection.
  void connectionClosed(const varlink::Peer& peer);

  /// Ends everything; calls `then` once the last of it is gone.
  void unloadAll(std::function<void()> then);

  /// Removes pins that a daemon before this one left.
  void removeStalePins();

  /// At the end of the daemon: removes what `prepareBpffs` made.
  void removePinDirectory();

 private:
  struct LoadRequest;
  struct AttachRequest;

  // Methods of io.btfd, by name.
  void load(varlink::Call call);
  void unload(varlink::Call call);
  void attach(varlink::Call call);
  void detach(varlink::Call call);
  void list(varlink::Call call);
  void describe(varlink::Call call);
  void getDescriptors(varlink::Call call);
  void describeKernel(varlink::Call call);

  void submitLoad(const std::shared_ptr<LoadRequest>& request, Job job);
  void loadDone(const std::shared_ptr<LoadRequest>& request, loader::Outcome<loader::ChannelMessage> outcome, Job job);
  void loaded(const std::shared_ptr<LoadRequest>& request, loader::ChannelMessage answer);
  void loadFailed(const std::shared_ptr<LoadRequest>& request, const loader::Failure& failure);
  void answerDryRun(const std::shared_ptr<LoadRequest>& request, registry::Object object, nlohmann::json verifierLogs);
  void submitAttach(const std::shared_ptr<AttachRequest>& request, Job job);
  void attachDone(const std::shared_ptr<AttachRequest>& request, loader::Outcome<loader::ChannelMessage> outcome,
                  Job job);
  void attached(const std::shared_ptr<AttachRequest>& request, loader::ChannelMessage answer);

  /// Has the spec built for a job whose worker had none, and calls `again`; or `failed` with the reason.
  void provideKernelBtf(std::function<void()> again, std::function<void(const std::string&)> failed);

  /// Drops all that the daemon holds of an object.
  void dismantle(registry::Object object, std::function<void()> then);

  void loadEnded(uid_t owner);
  void sweepPins(uid_t owner);

  /// The object, if it is there and the peer may change it; else the call was answered.
  registry::Object* findOwned(varlink::Call& call, std::int64_t id);

  /// The deadline that the request asks for; nothing if it is out of range, and then the call was answered.
  std::optional<std::chrono::milliseconds> deadlineOf(varlink::Call& call);

  const config::Config& config_;
  const policy::Policy& policy_;
  WorkerPool& workers_;
  KernelBtf& kernelBtf_;
  EventBus& events_;
  registry::Registry registry_;
  Pins pins_;
  /// Loads under way by owner, during which the owner's pins cannot be swept.
  std::map<uid_t, std::size_t> loadsUnderWay_;
};

} // namespace btfd::service
