#include "btfctl/object_watch.h"

#include "btfctl/fields.h"
#include "btfctl/text.h"

namespace btfd::btfctl {

using nlohmann::json;

std::optional<ObjectWatch> ObjectWatch::begin(const std::string& socket, std::int64_t id) {
  auto events = Daemon::connect(socket);
  if (!events || !events->startStream("Monitor") || !events->next()) { // the first says that the subscription stands
    return std::nullopt;
  }
  ObjectWatch watch(std::move(*events), socket, id);
  watch.look();
  return watch;
}

void ObjectWatch::read() {
  auto reply = events_->next();
  if (!reply) {
    events_.reset();
    return;
  }
  const json& event = field(*reply, "event");
  const std::string kind = textField(event, "kind");
  if (kind == "eventsLost") {
    look();
  } else if (kind == "unloaded" && numberField(event, "objectId") == id_) {
    ended_ = true;
    if (const std::int64_t uid = numberField(event, "uid", -1); uid >= 0) {
      by_ = " by " + userName(uid);
    }
  }
}

void ObjectWatch::look() {
  auto daemon = Daemon::connect(socket_);
  if (!daemon) {
    return;
  }
  const auto described = daemon->call("Describe", {{"objectId", id_}});
  ended_ = !described && described.error().name == "io.btfd.NoSuchObject";
}

} // namespace btfd::btfctl
