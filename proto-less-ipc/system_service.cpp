#include "varlink/system_service.h"

#include "varlink/embedded.h"
#include "varlink/errors.h"
#include "varlink/service.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <syslog.h>
#include <unistd.h>

namespace btfd::varlink {

namespace {

using nlohmann::json;

constexpr std::string_view kInterface = "io.systemd.service";

/// `handler`, for root and the daemon's own user only.
Service::Handler restricted(Service::Handler handler) {
  return [handler = std::move(handler)](Call call) {
    const uid_t uid = call.peer().uid;
    if (uid != 0 && uid != ::geteuid()) {
      return call.error(errors::kPermissionDenied);
    }
    handler(std::move(call));
  };
}

void reload(const SystemServiceHooks& hooks, Call call) {
  if (const auto reloaded = hooks.reload(); !reloaded) {
    return call.error("io.systemd.service.ReloadFailed", json{{"message", reloaded.error().message}});
  }
  call.reply();
}

void setLogLevel(const SystemServiceHooks& hooks, Call call) {
  const auto level = call.parameters().at("level").get<std::int64_t>();
  if (level < LOG_EMERG || level > LOG_DEBUG) {
    return call.invalidParameter("level", "must be 0 (emergency) to 7 (debug)");
  }
  hooks.setLogLevel(static_cast<int>(level));
  call.reply();
}

/// What is not UTF-8 would be dropped by one of these and replaced by the other.
bool isUtf8(std::string_view text) {
  const json value = text;
  return value.dump(-1, ' ', false, json::error_handler_t::ignore) ==
         value.dump(-1, ' ', false, json::error_handler_t::replace);
}

void getEnvironment(Call call) {
  json variables = json::array();
  for (char** variable = ::environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string_view::npos || !isUtf8(text)) {
      return call.error("io.systemd.service.InconsistentEnvironment");
    }
    variables.push_back(text);
  }
  call.reply(json{{"environment", std::move(variables)}});
}

} // namespace

Result<void> addSystemService(Service& service, SystemServiceHooks hooks) {
  if (auto added = service.addInterface(interfaceText(kInterface)); !added) {
    return added;
  }
  const auto shared = std::make_shared<const SystemServiceHooks>(std::move(hooks));
  service.add(kInterface, "Ping", [](Call call) { call.reply(); });
  service.add(kInterface, "Reload", restricted([shared](Call call) { reload(*shared, std::move(call)); }));
  service.add(kInterface, "SetLogLevel", restricted([shared](Call call) { setLogLevel(*shared, std::move(call)); }));
  service.add(kInterface, "GetLogLevel",
              restricted([shared](Call call) { call.reply(json{{"level", shared->logLevel()}}); }));
  service.add(kInterface, "GetEnvironment", restricted(getEnvironment));
  return {};
}

} // namespace btfd::varlink
