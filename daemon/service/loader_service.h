#pragma once

#include "attach_method.h"
#include "check_method.h"
#include "config/config.h"
#include "describe_method.h"
#include "event_bus.h"
#include "held_objects.h"
#include "image_methods.h"
#include "job_submission.h"
#include "kernel_btf.h"
#include "list_method.h"
#include "load_method.h"
#include "map_methods.h"
#include "policy/policy.h"
#include "read_method.h"
#include "run_statistics.h"
#include "update_method.h"
#include "varlink/call.h"
#include "varlink/service.h"
#include "worker_pool.h"

namespace btfd::service {

/// The methods of io.btfd. For the io_context's thread.
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

  /// The configuration has changed.
  void reconfigured() { load_.trimImages(); }

  /// What it holds for its clients.
  [[nodiscard]] HeldObjects& objects() { return objects_; }

  /// Ends what lives as long as the connection.
  void connectionClosed(const varlink::Peer& peer) {
    objects_.connectionClosed(peer);
    statistics_.connectionClosed(peer.connection);
  }

 private:
  // Methods of io.btfd, by name; those that take jobs of workers are classes of their own.
  void unload(varlink::Call call);
  void detach(varlink::Call call);
  void getDescriptors(varlink::Call call);
  void describeKernel(varlink::Call call);

  const policy::Policy& policy_;
  KernelBtf& kernelBtf_;
  EventBus& events_;
  HeldObjects objects_;
  JobSubmission jobs_;
  LoadMethod load_;
  AttachMethod attach_;
  UpdateMethod update_;
  CheckMethod check_;
  RunStatistics statistics_;
  DescribeMethod describe_;
  ListMethod list_;
  MapMethods maps_;
  ImageMethods image_;
  ReadMethod read_;
};

} // namespace btfd::service
