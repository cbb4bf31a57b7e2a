#include "daemon_verdicts.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>

namespace btfd::differential {

namespace {

std::string dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// A reply has more in it (logs, for one) than a line of a table can take.
std::string shorten(std::string text) {
  constexpr std::size_t kShown = 600;
  if (text.size() > kShown) {
    text.resize(kShown);
    text += "...";
  }
  return text;
}

Verdict failureOf(const varlink::Reply& reply) {
  Verdict verdict{.outcome = Outcome::broken, .errnoValue = 0, .tags = {}, .text = {}};
  verdict.text = shorten("btfd: " + reply.error + ": " + reply.parameters.value("message", dump(reply.parameters)));
  if (reply.error == "io.btfd.LoadFailed" && reply.parameters.contains("errno")) {
    verdict.outcome = Outcome::refused;
    verdict.errnoValue = reply.parameters.value("errno", 0);
  } else if (reply.error == "io.btfd.InvalidObject") {
    verdict.outcome = Outcome::invalid;
  }
  return verdict;
}

Verdict successOf(const nlohmann::json& object) {
  Verdict verdict{.outcome = Outcome::loaded, .errnoValue = 0, .tags = {}, .text = {}};
  for (const nlohmann::json& program : object.value("programs", nlohmann::json::array())) {
    verdict.tags[program.value("name", std::string())] = program.value("tag", std::string());
  }
  return verdict;
}

/// `choice`: the programs field of Load, or null.
Result<Verdict> judge(varlink::Client& client, BorrowedFd file, const nlohmann::json& choice) {
  nlohmann::json parameters{{"objectFileDescriptor", 0}};
  if (!choice.is_null()) {
    parameters["programs"] = choice;
  }
  const std::array<BorrowedFd, 1> descriptors{file};
  const auto loaded = client.call("io.btfd.Load", parameters, descriptors);
  if (!loaded) {
    return std::unexpected(loaded.error());
  }
  if (!loaded->error.empty()) {
    return failureOf(*loaded);
  }
  const nlohmann::json object = loaded->parameters.value("object", nlohmann::json::object());
  const auto unloaded = client.call("io.btfd.Unload", {{"objectId", object.value("id", 0)}});
  if (!unloaded) {
    return std::unexpected(unloaded.error());
  }
  if (!unloaded->error.empty()) {
    return Verdict{.outcome = Outcome::broken,
                   .errnoValue = 0,
                   .tags = {},
                   .text = "btfd: Unload: " + unloaded->error + ": " + dump(unloaded->parameters)};
  }
  return successOf(object);
}

nlohmann::json onlyProgram(const std::vector<std::string>& programs, const std::string& only) {
  nlohmann::json choice = nlohmann::json::object();
  for (const std::string& name : programs) {
    choice[name] = {{"enabled", name == only}};
  }
  return choice;
}

} // namespace

Result<ObjectVerdicts> daemonVerdicts(varlink::Client& client, const std::filesystem::path& path,
                                      const std::vector<std::string>& programs) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    return failErrno("cannot open " + path.string(), errno);
  }
  ObjectVerdicts verdicts;
  auto whole = judge(client, file, nullptr);
  if (!whole) {
    return std::unexpected(std::move(whole.error()));
  }
  verdicts.whole = std::move(*whole);
  for (const std::string& program : programs) {
    auto alone = judge(client, file, onlyProgram(programs, program));
    if (!alone) {
      return std::unexpected(std::move(alone.error()));
    }
    verdicts.alone[program] = std::move(*alone);
  }
  return verdicts;
}

} // namespace btfd::differential
