#include "event_bus.h"

#include <chrono>
#include <utility>

namespace btfd::service {

namespace {

nlohmann::json makeReply(const std::string& kind, const std::string& message, nlohmann::json event) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  event["kind"] = kind;
  event["message"] = message;
  event["atUSec"] = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  nlohmann::json reply;
  reply["event"] = std::move(event);
  return reply;
}

} // namespace

void EventBus::subscribe(varlink::Call call) {
  const auto subscriber = subscribers_.insert(subscribers_.end(), Subscriber{.call = std::move(call), .lost = 0});
  subscriber->call.onDisconnect([this, subscriber] { subscribers_.erase(subscriber); });
  subscriber->call.notify(makeReply("subscribed", "events follow as they happen", nlohmann::json::object()));
}

void EventBus::emit(const std::string& kind, const std::string& message, nlohmann::json event) {
  if (subscribers_.empty()) {
    return;
  }
  const nlohmann::json reply = makeReply(kind, message, std::move(event));
  for (Subscriber& subscriber : subscribers_) {
    send(subscriber, reply);
  }
}

void EventBus::send(Subscriber& subscriber, const nlohmann::json& reply) {
  if (subscriber.lost > 0) {
    const std::string message = std::to_string(subscriber.lost) + " events were lost, as they were read too slowly";
    if (!subscriber.call.notify(makeReply("eventsLost", message, nlohmann::json::object()))) {
      ++subscriber.lost;
      return;
    }
    subscriber.lost = 0;
  }
  if (!subscriber.call.notify(reply)) {
    ++subscriber.lost;
  }
}

} // namespace btfd::service
