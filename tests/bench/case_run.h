#pragma once

#include "base/error.h"
#include "daemon_session.h"
#include "engine_run.h"
#include "object_file.h"
#include "statistics.h"

#include <cstddef>
#include <optional>

namespace btfd::bench {

/// Durations of a load through the daemon.
struct DaemonResult {
  Percentiles loadMs;
  /// Load and Unload: what is compared with libbpf's open, load and close, and with the bare calls and their close.
  Percentiles loadAndUnloadMs;
};

struct CaseResult {
  std::size_t objectBytes = 0;
  int iterations = 0;
  /// Number of bpf(2) calls of a bare load.
  std::size_t bareCalls = 0;
  /// Open, load and close by libbpf in this process.
  Percentiles libbpfMs;
  /// The bpf(2) calls of that load alone, and the close of what they made.
  Percentiles bareMs;
  /// Through the daemon: an object that it sees for the first time, and the same one again.
  std::optional<DaemonResult> daemon;
  std::optional<DaemonResult> daemonCached;
  /// The CO-RE relocations alone, in this process.
  std::optional<Percentiles> engineMs;
};

/// Measures one object, its subjects taking turns in each iteration. `session` may be null: no daemon; so may `engine`:
/// no kernel BTF.
Result<CaseResult> runCase(ObjectFile object, int iterations, DaemonSession* session, const EngineRun* engine);

} // namespace btfd::bench
