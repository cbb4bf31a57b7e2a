#include "daemon.h"
#include "log.h"
#include "options.h"
#include "policy/policy.h"

#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

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

/// What only this system can say of a configuration that has been read.
int check(const btfd::config::Config::Socket& socket, const std::optional<gid_t>& group) {
  if (socket.group.empty() || group) {
    return EXIT_SUCCESS;
  }
  // The default group is made by systemd-sysusers, which may come later; any other was meant.
  const bool isDefault = socket.group == btfd::config::Config::Socket{}.group;
  return report({unknownGroup(socket.group)}, isDefault ? EXIT_SUCCESS : EX_CONFIG);
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
  if (parsed.options.checkConfig) {
    return check(config->socket, *group);
  }
  if (auto log = btfd::setUpLog(config->log); !log) {
    return report(log.error(), EX_CONFIG);
  }
  if (!groupName.empty() && !*group) {
    spdlog::warn("{}", unknownGroup(groupName));
  }
  btfd::Daemon daemon(parsed.options, std::move(*config), btfd::policy::Policy(*group, groupName));
  if (auto ran = daemon.run(); !ran) {
    spdlog::critical("{}", ran.error().message);
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
