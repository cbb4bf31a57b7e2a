#pragma once

#include "allocation_pass.h"
#include "case_run.h"
#include "machine.h"
#include "process_memory.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace btfd::bench {

struct PingResult {
  Percentiles ms;
  double perSecond = 0;
};

/// All that one run has measured. What needs a daemon is absent without one.
struct Report {
  Machine machine;
  /// In the order they ran.
  std::vector<std::pair<std::string, CaseResult>> cases;
  std::optional<std::string> daemonVersion;
  std::optional<SpecNumbers> spec;
  std::optional<PingResult> ping;
  std::optional<TreeMemory> memory;
  std::map<std::string, Allocations> allocations;
};

/// One object, as the project's documentation fixes it.
nlohmann::json toJson(const Report& report);

/// A table for people.
std::string toText(const Report& report);

} // namespace btfd::bench
