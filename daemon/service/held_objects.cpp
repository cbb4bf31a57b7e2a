#include "held_objects.h"

#include "answers.h"

#include <spdlog/spdlog.h>

#include <memory>
#include <utility>

namespace btfd::service {

HeldObjects::HeldObjects(const std::string& bpffs, WorkerPool& workers, EventBus& events)
    : workers_(workers), events_(events), filters_(workers), pins_(bpffs) {}

void HeldObjects::loadEnded(uid_t owner) {
  const auto count = loadsUnderWay_.find(owner);
  if (count != loadsUnderWay_.end() && --count->second == 0) {
    loadsUnderWay_.erase(count);
    sweepPins(owner);
  }
}

void HeldObjects::sweepPins(uid_t owner) {
  if (!loadsUnderWay_.contains(owner)) {
    pins_.sweep(owner, registry_);
  }
}

void HeldObjects::dismantle(registry::Object object, std::function<void()> then) {
  auto filters = TcFilters::takeFrom(object.links);
  if (filters.empty()) {
    release(std::move(object), std::move(then));
    return;
  }
  const Party party = partyOf(object.owner, object.connection);
  filters_.remove(std::move(filters), party,
                  [this, kept = std::make_shared<registry::Object>(std::move(object)), then = std::move(then)] {
                    release(std::move(*kept), then);
                  });
}

void HeldObjects::release(registry::Object object, std::function<void()> then) {
  nlohmann::json body;
  std::vector<UniqueFd> descriptors;
  for (registry::Link& link : object.links) {
    nlohmann::json entry;
    entry["detachBySocketOption"] = link.detachBySocketOption;
    if (link.programDetach) {
      entry["programDetach"] = *link.programDetach;
    }
    entry["descriptors"] = nlohmann::json::array();
    for (UniqueFd& descriptor : link.descriptors) {
      entry["descriptors"].push_back(descriptors.size());
      descriptors.push_back(std::move(descriptor));
    }
    body["links"].push_back(std::move(entry));
  }
  for (registry::Program& program : object.programs) {
    descriptors.push_back(std::move(program.descriptor));
  }
  for (registry::Map& map : object.maps) {
    descriptors.push_back(std::move(map.descriptor));
  }
  workers_.release(std::move(body), std::move(descriptors), partyOf(object.owner, object.connection),
                   [this, owner = object.owner, pinned = !object.pinned.empty(), then = std::move(then)] {
                     if (pinned) {
                       sweepPins(owner);
                     }
                     then();
                   });
}

void HeldObjects::connectionClosed(const varlink::Peer& peer) {
  for (const std::uint64_t id : registry_.idsOfConnection(peer.connection)) {
    registry::Object object = std::move(*registry_.take(id));
    spdlog::info("{} of user {} (pid {}) ended with its session", quoted(object), peer.uid, peer.pid);
    events_.emit("unloaded", quoted(object) + " ended with its session", eventOf(object, peer.uid));
    dismantle(std::move(object), [] {});
  }
}

void HeldObjects::unloadAll(std::function<void()> then) {
  auto remaining = std::make_shared<std::size_t>(registry_.objects().size() + 2);
  auto one = [remaining, then = std::move(then)] {
    if (--*remaining == 0) {
      then();
    }
  };
  while (!registry_.objects().empty()) {
    dismantle(std::move(*registry_.take(registry_.objects().begin()->first)), one);
  }
  filters_.close(one);
  one();
}

} // namespace btfd::service
