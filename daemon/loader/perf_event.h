#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

#include <linux/perf_event.h>
#include <sys/types.h>

namespace btfd::loader {

/// An io.btfd.PerfEvent that has been checked.
struct PerfEvent {
  /// software or hardware.
  std::string type;
  struct perf_event_attr attributes{};
  /// -1: all processes.
  pid_t pid = -1;
  /// Nothing: each CPU.
  std::optional<int> cpu;
  /// What it counts, where and how often.
  std::string description;
};

/// Checks an io.btfd.PerfEvent. The error says what is wrong with it.
Result<PerfEvent> readPerfEvent(const nlohmann::json& request);

/// Opens `event` on its CPU, or on each CPU that is online. The error's code is the kernel's.
Result<std::vector<UniqueFd>> openPerfEvent(const PerfEvent& event);

} // namespace btfd::loader
