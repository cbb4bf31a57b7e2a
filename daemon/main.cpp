#include "daemon.h"
#include "log.h"
#include "options.h"
#include "policy/policy.h"

#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include <sys/types.h>
#include <sysexits.h>

namespace {

/// EX_CONFIG keeps systemd from restarting the daemon until somebody has mended the configuration
/// (RestartPreventExitStatus= in btfd.service).
int report(const btfd::Error& error, int status) {
  std::fprintf(stderr, "btfd: %s\n", error.message.c_str()); // NOLINT(cppcoreguidelines-pro-type-vararg)
  return status;
}

/// What is wrong with a group that the system does not have: who is in it cannot connect.
std::string unknownGroup(const std::string& name) {
  return "socket.group: the system has no group '" + name +
         "', so only root and the user that btfd runs as may connect";
}

/// What only this system can say of a configuration that has been read: whether its group is there. A warning where the
/// daemon can do without, else the error.
btfd::Result<std::optional<std::string>> checkGroup(const std::string& name, const std::optional<gid_t>& group) {
  if (name.empty() || group) {
    return std::nullopt;
  }
  // The default group is made by systemd-sysusers, which may come later; any other was meant.
  const bool isDefault = name == btfd::config::Config::Socket{}.group;
  return isDefault ? btfd::Result<std::optional<std::string>>(unknownGroup(name)) : btfd::fail(unknownGroup(name));
}

} // namespace

int main(int argc, char** argv) {
  const auto parsed = btfd::parseOptions(argc, argv);
  if (parsed.exitStatus) {
    return *parsed.exitStatus;
  }
  auto config = btfd::loadConfig(parsed.options);
  if (!config) {
    return report(config.error(), EX_CONFIG);
  }
  const std::string groupName = config->socket.group;
  const auto group = btfd::policy::findGroup(groupName);
  if (!group) {
    return report(group.error(), EX_OSERR);
  }
  const auto checked = checkGroup(groupName, *group);
  if (!checked) {
    return report(checked.error(), EX_CONFIG);
  }
  if (parsed.options.checkConfig) {
    return *checked ? report({**checked}, EXIT_SUCCESS) : EXIT_SUCCESS;
  }
  if (auto log = btfd::setUpLog(config->log); !log) {
    return report(log.error(), EX_CONFIG);
  }
  if (*checked) {
    spdlog::warn("{}", **checked);
  }
  btfd::Daemon daemon(parsed.options, std::move(*config), btfd::policy::Policy(*group, groupName));
  if (auto ran = daemon.run(); !ran) {
    spdlog::critical("{}", ran.error().message);
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
