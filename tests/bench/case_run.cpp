#include "case_run.h"

#include "bpf_recording.h"
#include "libbpf_load.h"

#include <array>
#include <utility>

namespace btfd::bench {

namespace {

/// Turns before counting starts: page faults, libbpf's feature probes and the CPU's caches are behind them.
constexpr int kWarmUpIterations = 3;

/// The samples of one way to load through the daemon.
struct DaemonSamples {
  std::vector<double> load;
  std::vector<double> loadAndUnload;

  void add(const DaemonLoad& sample) {
    load.push_back(sample.loadMs);
    loadAndUnload.push_back(sample.loadAndUnloadMs);
  }

  [[nodiscard]] DaemonResult result() && {
    return {.loadMs = percentilesOf(std::move(load)), .loadAndUnloadMs = percentilesOf(std::move(loadAndUnload))};
  }
};

class CaseRun {
 public:
  CaseRun(ObjectFile object, DaemonSession* session, const EngineRun* engine, Recording recording, UniqueFd unchanged)
      : object_(std::move(object)), session_(session), engine_(engine), recording_(std::move(recording)),
        unchanged_(std::move(unchanged)) {}

  /// One turn of each subject. `keep`: whether it counts.
  Result<void> turn(bool keep) {
    auto start = Clock::now();
    if (auto done = loadWithLibbpf(object_.bytes()); !done) {
      return done;
    }
    const double libbpf = millisecondsSince(start);
    start = Clock::now();
    if (auto done = recording_.replay(); !done) {
      return done;
    }
    const double bare = millisecondsSince(start);
    if (keep) {
      libbpf_.push_back(libbpf);
      bare_.push_back(bare);
    }
    if (auto done = engine_ == nullptr ? Result<void>() : engineTurn(keep); !done) {
      return done;
    }
    return session_ == nullptr ? Result<void>() : daemonTurn(keep);
  }

  CaseResult result() && {
    CaseResult result;
    result.objectBytes = object_.bytes().size();
    result.iterations = static_cast<int>(libbpf_.size());
    result.bareCalls = recording_.calls();
    result.libbpfMs = percentilesOf(std::move(libbpf_));
    result.bareMs = percentilesOf(std::move(bare_));
    if (engine_ != nullptr) {
      result.engineMs = percentilesOf(std::move(engineSamples_));
    }
    if (session_ != nullptr) {
      result.daemon = std::move(missed_).result();
      result.daemonCached = std::move(cached_).result();
    }
    return result;
  }

 private:
  Result<void> engineTurn(bool keep) {
    const auto duration = engine_->turn(unchanged_);
    if (!duration) {
      return std::unexpected(duration.error());
    }
    if (keep) {
      engineSamples_.push_back(*duration);
    }
    return {};
  }

  Result<void> daemonTurn(bool keep) {
    object_.makeDistinct(++number_);
    const auto distinct = object_.memfd();
    if (!distinct) {
      return std::unexpected(distinct.error());
    }
    const auto missed = session_->loadAndUnload(*distinct);
    if (!missed) {
      return std::unexpected(missed.error());
    }
    const auto cached = session_->loadAndUnload(unchanged_);
    if (!cached) {
      return std::unexpected(cached.error());
    }
    if (keep) {
      missed_.add(*missed);
      cached_.add(*cached);
    }
    return {};
  }

  ObjectFile object_;
  DaemonSession* session_;
  const EngineRun* engine_;
  Recording recording_;
  UniqueFd unchanged_;
  /// Starts anew with each process: a daemon that runs longer has seen the small numbers.
  std::uint64_t number_ = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
  std::vector<double> libbpf_;
  std::vector<double> bare_;
  std::vector<double> engineSamples_;
  DaemonSamples missed_;
  DaemonSamples cached_;
};

} // namespace

Result<CaseResult> runCase(ObjectFile object, int iterations, DaemonSession* session, const EngineRun* engine) {
  if (auto loaded = loadWithLibbpf(object.bytes()); !loaded) {
    return std::unexpected(std::move(loaded.error()));
  }
  auto recording = Recording::of([&] { return loadWithLibbpf(object.bytes()); });
  if (!recording) {
    return std::unexpected(std::move(recording.error()));
  }
  auto unchanged = object.memfd();
  if (!unchanged) {
    return std::unexpected(std::move(unchanged.error()));
  }
  CaseRun run(std::move(object), session, engine, std::move(*recording), std::move(*unchanged));
  for (int i = 0; i < kWarmUpIterations + iterations; ++i) {
    if (auto done = run.turn(i >= kWarmUpIterations); !done) {
      return std::unexpected(std::move(done.error()));
    }
  }
  return std::move(run).result();
}

} // namespace btfd::bench
