#pragma once

#include "config/config.h"

#include <optional>
#include <string>

namespace btfd {

/// What the command line says. What is set overrides the configuration.
struct Options {
  /// Empty: the default file, which may be missing.
  std::string configFile;
  std::optional<std::string> socket;
  std::optional<std::string> stateDirectory;
  std::optional<std::string> bpffs;
  /// Read the configuration, say what is wrong with it, and end.
  bool checkConfig = false;
};

/// What main does next: go on with the options, or end with a status (after --help, or an error that has been
/// reported).
struct ParsedOptions {
  Options options;
  std::optional<int> exitStatus;
};

ParsedOptions parseOptions(int argc, char** argv);

/// The configuration that the options name, with what they override.
Result<config::Config> loadConfig(const Options& options);

} // namespace btfd
