#pragma once

#include "base/error.h"

#include <filesystem>
#include <map>
#include <string>

#include <sys/types.h>

namespace btfd::bench {

/// A daemon of our own, beside the system's: its socket, state and bpffs are in a temporary directory. Stopped with
/// this value.
class PrivateDaemon {
 public:
  /// Starts `binary` with `environment` added to ours, and waits until it accepts connections. The error has the end of
  /// its log.
  static Result<PrivateDaemon> start(const std::filesystem::path& binary,
                                     const std::map<std::string, std::string>& environment = {});

  PrivateDaemon(PrivateDaemon&& other) noexcept;
  PrivateDaemon& operator=(PrivateDaemon&&) = delete;
  ~PrivateDaemon();

  [[nodiscard]] std::string socketPath() const { return (directory_ / "socket").string(); }

  [[nodiscard]] pid_t process() const { return process_; }

 private:
  PrivateDaemon() = default;
  Result<void> prepareDirectory();
  Result<void> spawn(const std::filesystem::path& binary, const std::map<std::string, std::string>& environment);
  Result<void> waitUntilReady();
  [[nodiscard]] std::string endOfLog() const;

  std::filesystem::path directory_;
  pid_t process_ = -1;
};

} // namespace btfd::bench
