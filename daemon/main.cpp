#include "daemon.h"
#include "log.h"
#include "options.h"
#include "policy/policy.h"

#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>

#include <sysexits.h>

namespace {

/// EX_CONFIG keeps systemd from restarting the daemon until somebody has mended the configuration
/// (RestartPreventExitStatus= in btfd.service).
int report(const btfd::Error& error, int status) {
  std::fprintf(stderr, "btfd: %s\n", error.message.c_str()); // NOLINT(cppcoreguidelines-pro-type-vararg)
  return status;
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
  if (parsed.options.checkConfig) {
    return EXIT_SUCCESS;
  }
  if (auto log = btfd::setUpLog(config->log); !log) {
    return report(log.error(), EX_CONFIG);
  }
  const auto group = btfd::policy::findGroup(config->socket.group);
  if (!group) {
    return report(group.error(), EX_OSERR);
  }
  btfd::Daemon daemon(parsed.options, std::move(*config), btfd::policy::Policy(*group));
  if (auto ran = daemon.run(); !ran) {
    spdlog::critical("{}", ran.error().message);
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
