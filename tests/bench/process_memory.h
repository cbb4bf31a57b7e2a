#pragma once

#include <cstdint>
#include <optional>

#include <sys/types.h>

namespace btfd::bench {

/// Memory of a process and all that descend from it.
struct TreeMemory {
  int processes = 0;
  /// Pages in memory, those that are shared counted for each process.
  std::uint64_t rssBytes = 0;
  /// The same, a page shared by n processes counted as 1/n for each.
  std::uint64_t pssBytes = 0;
  /// The root's alone.
  std::uint64_t rootRssBytes = 0;
};

/// Reads /proc/PID/smaps_rollup; nothing where that is not allowed or the process is gone.
std::optional<TreeMemory> treeMemory(pid_t root);

} // namespace btfd::bench
