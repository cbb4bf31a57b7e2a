#pragma once

#include "base/closers.h"
#include "base/unique_fd.h"
#include "config/config.h"
#include "options.h"
#include "policy/policy.h"
#include "service/event_bus.h"
#include "service/kernel_btf.h"
#include "service/loader_service.h"
#include "service/uevent.h"
#include "service/worker_pool.h"
#include "service_manager.h"
#include "varlink/server.h"
#include "varlink/service.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

namespace btfd {

/// The daemon: its parts, connected.
class Daemon {
 public:
  Daemon(Options options, config::Config config, policy::Policy policy);

  /// Serves until it is told to stop. Error: it could not start.
  Result<void> run();

 private:
  Result<void> defineService();
  Result<void> prepareKernelBtf();
  Result<void> listen();
  void awaitSignal();
  Result<void> reload();
  void stop();

  Closers closers_; ///< Before all that has descriptors.
  Options options_;
  config::Config config_;
  /// What the daemon began with, for what only a restart changes.
  config::Config atStart_;
  policy::Policy policy_;
  boost::asio::io_context context_;
  ServiceManager manager_;
  service::EventBus events_;
  service::KernelBtf kernelBtf_;
  service::WorkerPool workers_;
  service::LoaderService loader_;
  service::ModuleWatch moduleWatch_;
  varlink::Service varlinkService_;
  varlink::Server server_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer stopTimer_;
  bool ownSocket_ = false;
  /// Held as long as the daemon runs.
  UniqueFd bpffsLock_;
};

} // namespace btfd
