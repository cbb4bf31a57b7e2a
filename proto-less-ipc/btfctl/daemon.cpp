#include "btfctl/daemon.h"

#include "btfctl/fields.h"
#include "btfctl/text.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <vector>

namespace btfd::btfctl {
namespace {

using nlohmann::json;

std::string qualified(std::string_view method) {
  return "io.btfd." + std::string(method);
}

std::unexpected<Failure> cannotConnect(const std::string& socket, const Error& error) {
  const std::string message = "the daemon cannot be reached: " + error.message;
  if (error.code == EACCES || error.code == EPERM) {
    return failed(ExitStatus::Denied, message + "; the socket's owner, group and mode say who may use it");
  }
  if (error.code == ENOENT || error.code == ECONNREFUSED) {
    return failed(ExitStatus::Unreachable,
                  message + "; is btfd running, and is " + socket + " its socket (--socket, $BTFD_SOCKET)?");
  }
  return failed(ExitStatus::Unreachable, message);
}

std::unexpected<Failure> lost(const Error& error) {
  return failed(ExitStatus::Unreachable, error.message);
}

Outcome<json> outcomeOf(Result<varlink::Reply> reply) {
  if (!reply) {
    return lost(reply.error());
  }
  if (!reply->error.empty()) {
    return refused(std::move(reply->error), std::move(reply->parameters));
  }
  return std::move(reply->parameters);
}

bool isNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// There is no object of that name; says which there are of similar names.
Outcome<std::int64_t> noSuchName(Daemon& daemon, const std::string& name) {
  std::vector<std::string> names;
  if (auto all = daemon.list(json::object())) {
    std::ranges::transform(*all, std::back_inserter(names),
                           [](const json& object) { return textField(object, "name"); });
  }
  return failed(ExitStatus::NotFound, "there is no object named '" + name + "'" + didYouMean(name, names));
}

Outcome<std::int64_t> ambiguous(const std::string& name, const json& objects) {
  std::vector<std::string> ids;
  std::ranges::transform(objects, std::back_inserter(ids), [](const json& object) { return textField(object, "id"); });
  return failed(ExitStatus::Failed, std::to_string(ids.size()) + " objects are named '" + name +
                                        "': say which by its id, " + joinedWithOr(ids));
}

} // namespace

Outcome<Daemon> Daemon::connect(const std::string& socket) {
  auto client = varlink::Client::connect(socket);
  return client ? Outcome<Daemon>(Daemon(std::move(*client))) : cannotConnect(socket, client.error());
}

Outcome<json> Daemon::call(std::string_view method, const json& parameters, std::span<const UniqueFd> descriptors) {
  const std::vector<BorrowedFd> borrowed(descriptors.begin(), descriptors.end());
  return outcomeOf(client_.call(qualified(method), parameters, borrowed));
}

Outcome<UniqueFd> Daemon::callForDescriptor(std::string_view method, const json& parameters) {
  auto reply = client_.call(qualified(method), parameters);
  std::vector<UniqueFd> descriptors;
  if (reply) {
    descriptors = std::move(reply->descriptors);
  }
  if (auto outcome = outcomeOf(std::move(reply)); !outcome) {
    return std::unexpected(std::move(outcome).error());
  }
  if (descriptors.size() != 1) {
    return failed(ExitStatus::Failed, "the daemon's answer has no descriptor");
  }
  return std::move(descriptors.front());
}

Outcome<void> Daemon::startStream(std::string_view method) {
  auto started = client_.startMore(qualified(method), json::object());
  return started ? Outcome<void>{} : lost(started.error());
}

Outcome<json> Daemon::next() {
  return outcomeOf(client_.next());
}

Outcome<void> Daemon::stream(std::string_view method, const json& parameters,
                             const std::function<void(json&)>& onReply) {
  Outcome<void> outcome;
  auto ended = client_.callMore(qualified(method), parameters, [&](varlink::Reply& reply) {
    if (reply.error.empty()) {
      onReply(reply.parameters);
    } else {
      outcome = refused(std::move(reply.error), std::move(reply.parameters));
    }
    return true;
  });
  return ended ? outcome : lost(ended.error());
}

Outcome<json> Daemon::list(const json& parameters) {
  json objects = json::array();
  auto listed = stream("List", parameters, [&](json& reply) {
    if (const auto part = reply.find("objects"); part != reply.end() && part->is_array()) {
      std::ranges::move(*part, std::back_inserter(objects));
    }
  });
  return listed ? Outcome<json>(std::move(objects)) : std::unexpected(std::move(listed).error());
}

BorrowedFd Daemon::socket() const {
  return client_.socket();
}

Outcome<std::int64_t> parseId(std::string_view what, std::string_view text) {
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc{} || end != text.data() + text.size() || id <= 0) {
    return failed(ExitStatus::Usage,
                  "'" + std::string(text) + "' is no " + std::string(what) + ": it must be a number");
  }
  return id;
}

Outcome<std::int64_t> findObject(Daemon& daemon, const std::string& idOrName) {
  if (isNumber(idOrName)) {
    return parseId("object id", idOrName);
  }
  auto objects = daemon.list({{"name", idOrName}});
  if (!objects) {
    return std::unexpected(std::move(objects).error());
  }
  if (objects->empty()) {
    return noSuchName(daemon, idOrName);
  }
  return objects->size() == 1 ? Outcome<std::int64_t>(numberField(objects->front(), "id"))
                              : ambiguous(idOrName, *objects);
}

} // namespace btfd::btfctl
