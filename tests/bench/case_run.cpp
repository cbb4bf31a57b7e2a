#include "case_run.h"

#include "bpf_recording.h"
#include "libbpf_load.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

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
        unchanged_(std::move(unchanged)) {
    if (engine_ != nullptr) {
      subjects_.push_back(&CaseRun::engineTurn);
    }
    if (session_ != nullptr) {
      subjects_.insert(subjects_.end(), {&CaseRun::missedTurn, &CaseRun::cachedTurn});
    }
  }

  /// One turn of each subject, in an order that chance decides, and before it one that does not count: all find the
  /// CPU's caches as they left them themselves, not as another did. `keep`: whether it counts.
  Result<void> turn(bool keep) {
    std::ranges::shuffle(subjects_, random_);
    for (const auto subject : subjects_) {
      for (const bool counts : {false, keep}) {
        if (auto done = (this->*subject)(counts); !done) {
          return done;
        }
      }
    }
    return {};
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
  using Subject = Result<void> (CaseRun::*)(bool keep);

  static void note(bool keep, std::vector<double>& samples, double sample) {
    if (keep) {
      samples.push_back(sample);
    }
  }

  Result<void> libbpfTurn(bool keep) {
    const auto start = Clock::now();
    auto done = loadWithLibbpf(object_.bytes());
    note(keep, libbpf_, millisecondsSince(start));
    return done;
  }

  Result<void> bareTurn(bool keep) {
    const auto start = Clock::now();
    auto done = recording_.replay();
    note(keep, bare_, millisecondsSince(start));
    return done;
  }

  Result<void> engineTurn(bool keep) {
    const auto duration = engine_->turn(unchanged_);
    if (!duration) {
      return std::unexpected(duration.error());
    }
    note(keep, engineSamples_, *duration);
    return {};
  }

  Result<void> missedTurn(bool keep) {
    object_.makeDistinct(++number_);
    const auto distinct = object_.memfd();
    return distinct ? daemonTurn(*distinct, missed_, keep) : std::unexpected(distinct.error());
  }

  Result<void> cachedTurn(bool keep) { return daemonTurn(unchanged_, cached_, keep); }

  Result<void> daemonTurn(BorrowedFd object, DaemonSamples& samples, bool keep) {
    const auto sample = session_->loadAndUnload(object);
    if (!sample) {
      return std::unexpected(sample.error());
    }
    if (keep) {
      samples.add(*sample);
    }
    return {};
  }

  ObjectFile object_;
  DaemonSession* session_;
  const EngineRun* engine_;
  Recording recording_;
  UniqueFd unchanged_;
  std::vector<Subject> subjects_{&CaseRun::libbpfTurn, &CaseRun::bareTurn};
  /// The same order in each run.
  std::mt19937 random_; // NOLINT(cert-msc32-c,cert-msc51-cpp)
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
