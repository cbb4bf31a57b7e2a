#pragma once

#include "base/error.h"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace btfd::config {

/// Where the daemon's configuration is looked for when no other file is named: /etc/btfd/btfd.json, unless CMake's
/// BTFD_CONFIG_DIR is another directory.
inline constexpr std::string_view kDefaultFile = BTFD_CONFIG_FILE;

/// A larger file is refused: the example with all its comments takes less than a fiftieth of this.
inline constexpr std::size_t kMaximumFileBytes = std::size_t{256} << 10;

/// When the kernel's BTF is parsed.
enum class KernelBtfLoad {
  Startup,  ///< "startup": before the daemon says that it is ready
  OnDemand, ///< "on-demand": with the first load that needs it
};

/// Where the daemon's log goes.
enum class LogTarget {
  Auto,   ///< "auto": to the journal if standard error is connected to it, else to standard error
  Stderr, ///< "stderr"
  Journal ///< "journal"
};

/// What the configuration says, checked. A default-constructed value is what the file `{}` means.
///
/// Members are named as the file's keys are; where a key ends in a unit (deadlineMs), the member's type says it
/// instead. The example file config/btfd.json tells what each one does.
struct Config {
  struct Socket {
    /// Absolute, and short enough for sockaddr_un. Unused when systemd passes the socket.
    std::string path = "/run/btfd/io.btfd.Loader";
    /// Owner group of the socket, by name; empty: the group that the daemon runs as.
    std::string group = "btfd";
    /// Permission bits (0 to 0777); "0660" in the file.
    unsigned mode = 0660;

    bool operator==(const Socket&) const = default;
  };

  struct KernelBtf {
    KernelBtfLoad load = KernelBtfLoad::Startup;
    /// BTF or vmlinux ELF file for a kernel that shows no BTF; empty: none.
    std::string path;
    /// Whether the BTF of modules is used, too.
    bool modules = true;

    bool operator==(const KernelBtf&) const = default;
  };

  struct Workers {
    /// 0: one for each core, but at least 2.
    std::size_t count = 0;

    bool operator==(const Workers&) const = default;
  };

  struct Cache {
    /// Of all relocated objects that are kept for the next load; 0: none is.
    std::size_t maxBytes = std::size_t{64} << 20;

    bool operator==(const Cache&) const = default;
  };

  struct Limits {
    /// limits.deadlineMs: for a job whose request names none.
    std::chrono::milliseconds deadline{60'000};
    /// limits.maximumDeadlineMs: the longest that a request may name. At least `deadline`.
    std::chrono::milliseconds maximumDeadline{600'000};
    std::size_t objectBytes = std::size_t{64} << 20;
    /// Requests that wait for a worker; those past it get io.btfd.Busy.
    std::size_t queuedRequests = 256;
    std::size_t connections = 4096;
    /// At most `connections`.
    std::size_t connectionsPerUser = 128;
    /// How much of a verifier log is kept in an answer. At most half of `messageBytes`.
    std::size_t verifierLogBytes = std::size_t{1} << 20;
    /// One Varlink message, in either direction.
    std::size_t messageBytes = std::size_t{16} << 20;

    bool operator==(const Limits&) const = default;
  };

  struct Log {
    /// One of spdlog's names: trace, debug, info, warning, error, critical, off.
    std::string level = "info";
    LogTarget target = LogTarget::Auto;

    bool operator==(const Log&) const = default;
  };

  Socket socket;
  /// Absolute path, for the database and the store of persistent objects.
  std::string stateDirectory = "/var/lib/btfd";
  /// Absolute path of a directory on a bpffs, for pins.
  std::string bpffs = "/sys/fs/bpf/btfd";
  KernelBtf kernelBtf;
  Workers workers;
  Cache cache;
  Limits limits;
  Log log;

  bool operator==(const Config&) const = default;
};

/// Reads `text`, the contents of a configuration file; `fileName` is for messages only.
///
/// The error's message holds everything that is wrong, one line each ("btfd.json:12:5: limits.deadlineMs: ...", line
/// and column of the key, counted from 1). A syntax error ends the reading: it comes last, after what is wrong before
/// it.
Result<Config> parse(std::string_view text, std::string_view fileName);

/// Reads the file at `path`; errors as parse() has them, or why the file can't be read. An empty `path` stands for
/// kDefaultFile, which may be missing (all defaults); a file that was named may not.
Result<Config> load(const std::string& path);

/// All keys that the reader knows, as "section.key", in the order of the example. For the tests that hold reader,
/// schema and example together.
std::vector<std::string> knownKeys();

} // namespace btfd::config
