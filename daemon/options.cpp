#include "options.h"

#include <CLI/CLI.hpp>

#include <filesystem>

namespace btfd {

namespace {

constexpr auto kFooter =
    R"(Without options btfd is the system's daemon, with /etc/btfd, /run/btfd, /var/lib/btfd and /sys/fs/bpf/btfd.

Examples:
  btfd                                            the system's daemon, as its systemd unit starts it
  btfd --socket /tmp/my.sock --state-dir /tmp/state --bpffs /sys/fs/bpf/my
                                                  a private daemon beside it
  btfd --config my.json --check-config            say what is wrong with a configuration

Exit status:
   0  it was told to stop, or --check-config found nothing wrong
   1  it could not start: the log says why
   2  the command line is wrong
  71  the user database could not be asked for the socket's group
  78  the configuration is wrong
)";

/// As most programs have it, btfctl among them; CLI11 has a number for each kind of mistake.
constexpr int kUsageStatus = 2;

} // namespace

ParsedOptions parseOptions(int argc, char** argv) {
  ParsedOptions parsed;
  Options& options = parsed.options;
  CLI::App app("Loads eBPF objects for its clients, with the kernel's BTF resident.");
  app.set_version_flag("--version", "btfd " BTFD_VERSION);
  app.add_option("--config", options.configFile, "Configuration file")->type_name("FILE");
  app.add_option("--socket", options.socket, "Socket to listen on")->type_name("PATH");
  app.add_option("--state-dir", options.stateDirectory, "Directory for what is kept across restarts")->type_name("DIR");
  app.add_option("--bpffs", options.bpffs, "Directory on a bpffs for pins")->type_name("DIR");
  app.add_flag("--check-config", options.checkConfig, "Only read the configuration and say what is wrong with it");
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success); // --help, --version
    app.exit(error);
    parsed.exitStatus = asked ? 0 : kUsageStatus;
  }
  return parsed;
}

Result<config::Config> loadConfig(const Options& options) {
  auto loaded = config::load(options.configFile);
  if (!loaded) {
    return loaded;
  }
  const auto absolute = [](const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal().string();
  };
  if (options.socket) {
    loaded->socket.path = absolute(*options.socket);
  }
  if (options.stateDirectory) {
    loaded->stateDirectory = absolute(*options.stateDirectory);
  }
  if (options.bpffs) {
    loaded->bpffs = absolute(*options.bpffs);
  }
  return loaded;
}

} // namespace btfd
