#pragma once

#include "varlink/call.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <list>
#include <memory>
#include <string>

namespace btfd::service {

/// Tells the callers of Monitor what happens. One that reads too slowly misses events, and is told how many.
class EventBus {
 public:
  /// Adds a caller of io.btfd.Monitor, which gets event "subscribed" at once.
  void subscribe(varlink::Call call);

  /// Sends `event`, an io.btfd.Event but for kind and time.
  void emit(const std::string& kind, const std::string& message, nlohmann::json event = nlohmann::json::object());

 private:
  struct Subscriber {
    varlink::Call call;
    std::uint64_t lost = 0;
  };

  static void send(Subscriber& subscriber, const nlohmann::json& reply);

  std::list<Subscriber> subscribers_;
};

} // namespace btfd::service
