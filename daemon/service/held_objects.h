#pragma once

#include "event_bus.h"
#include "pins.h"
#include "registry/registry.h"
#include "tc_filters.h"
#include "worker_pool.h"

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include <sys/types.h>

namespace btfd::service {

/// What the daemon holds for its clients, and how it lets go of it. For the io_context's thread.
class HeldObjects {
 public:
  /// Maps that objects want pinned by name are pinned below `bpffs`.
  HeldObjects(const std::string& bpffs, WorkerPool& workers, EventBus& events);

  [[nodiscard]] registry::Registry& registry() { return registry_; }

  /// The filters of tc among the links.
  [[nodiscard]] TcFilters& filters() { return filters_; }

  /// Where maps of `owner` are pinned.
  [[nodiscard]] std::string pinDirectoryOf(uid_t owner) const { return pins_.directoryOf(owner); }

  /// A load of `owner` is under way: its pins cannot be told from those of nobody until it has ended.
  void loadBegan(uid_t owner) { ++loadsUnderWay_[owner]; }

  void loadEnded(uid_t owner);

  /// Drops all that is held of an object, in a worker, as the kernel may take its time. `then` is called when it is
  /// gone.
  void dismantle(registry::Object object, std::function<void()> then);

  /// Ends what lives as long as the connection.
  void connectionClosed(const varlink::Peer& peer);

  /// Ends everything; calls `then` once the last of it is gone.
  void unloadAll(std::function<void()> then);

  /// Removes pins that a daemon before this one left.
  void removeStalePins() { pins_.sweepAll(registry_); }

  /// At the end of the daemon: removes what `prepareBpffs` made.
  void removePinDirectory() { pins_.removeDirectory(); }

 private:
  void sweepPins(uid_t owner);
  void release(registry::Object object, std::function<void()> then);

  WorkerPool& workers_;
  EventBus& events_;
  registry::Registry registry_;
  TcFilters filters_;
  Pins pins_;
  std::map<uid_t, std::size_t> loadsUnderWay_;
};

} // namespace btfd::service
