#include "allocation_pass.h"
#include "case_run.h"
#include "daemon_session.h"
#include "object_file.h"
#include "private_daemon.h"
#include "report.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace btfd::bench {

namespace {

constexpr std::array kCases{"one", "many30", "hundred", "wide500"};
/// All cases together take about two minutes with these.
constexpr int kDefaultIterations = 150;
constexpr int kPings = 5000;

struct Options {
  std::vector<std::string> cases{kCases.begin(), kCases.end()};
  int iterations = kDefaultIterations;
  std::string socket;
  bool withoutDaemon = false;
  bool json = false;
};

std::filesystem::path programDirectory() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

Result<PingResult> measurePings(DaemonSession& session) {
  std::vector<double> samples;
  const auto start = Clock::now();
  for (int i = 0; i < kPings; ++i) {
    const auto duration = session.ping();
    if (!duration) {
      return std::unexpected(duration.error());
    }
    samples.push_back(*duration);
  }
  constexpr double kMillisecondsPerSecond = 1000;
  const double perSecond = kPings / (millisecondsSince(start) / kMillisecondsPerSecond);
  return PingResult{.ms = percentilesOf(std::move(samples)), .perSecond = perSecond};
}

Result<void> describeDaemon(DaemonSession& session, Report& report) {
  auto version = session.version();
  if (!version) {
    return std::unexpected(std::move(version.error()));
  }
  report.daemonVersion = std::move(*version);
  auto ping = measurePings(session);
  if (!ping) {
    return std::unexpected(std::move(ping.error()));
  }
  report.ping = *ping;
  auto spec = session.describeSpec();
  if (!spec) {
    return std::unexpected(std::move(spec.error()));
  }
  report.spec = *spec;
  if (session.peer() > 1) { // 1: systemd listens for the daemon
    report.memory = treeMemory(session.peer());
  }
  return {};
}

/// Runs the cases, then, once the daemon is warm, asks it about itself.
Result<void> measure(const Options& options, const std::map<std::string, ObjectFile>& objects, DaemonSession* session,
                     Report& report) {
  const auto engine = EngineRun::prepare();
  if (!engine && engine.error().code != ENOENT) {
    return std::unexpected(engine.error());
  }
  for (const std::string& name : options.cases) {
    auto result = runCase(objects.at(name), options.iterations, session, engine ? &*engine : nullptr);
    if (!result) {
      return std::unexpected(std::move(result.error()).within("case " + name));
    }
    report.cases.emplace_back(name, std::move(*result));
  }
  return session == nullptr ? Result<void>() : describeDaemon(*session, report);
}

Result<void> measureWithDaemon(const Options& options, const std::map<std::string, ObjectFile>& objects,
                               Report& report) {
  std::optional<PrivateDaemon> daemon;
  std::string socket = options.socket;
  if (socket.empty()) {
    auto started = PrivateDaemon::start(programDirectory() / "btfd");
    if (!started) {
      return std::unexpected(std::move(started.error()));
    }
    socket = daemon.emplace(std::move(*started)).socketPath();
  }
  auto session = DaemonSession::connect(socket);
  if (!session) {
    return std::unexpected(std::move(session.error()));
  }
  return measure(options, objects, &*session, report);
}

/// With --socket there is no daemon of ours that could be started with the counter.
Result<void> addAllocations(const Options& options, const std::map<std::string, ObjectFile>& objects, Report& report) {
  const auto counter = programDirectory() / "btfd-bench-allocations.so";
  if (options.withoutDaemon || !options.socket.empty() || !std::filesystem::exists(counter)) {
    return {};
  }
  auto allocations = countAllocations(programDirectory() / "btfd", counter, objects);
  if (!allocations) {
    return std::unexpected(std::move(allocations.error()));
  }
  report.allocations = std::move(*allocations);
  return {};
}

Result<Report> run(const Options& options) {
  std::map<std::string, ObjectFile> objects;
  for (const std::string& name : options.cases) {
    auto object = ObjectFile::read(programDirectory().parent_path() / "bpf" / ("bench_" + name + ".o"));
    if (!object) {
      return std::unexpected(std::move(object.error()));
    }
    objects.emplace(name, std::move(*object));
  }
  Report report{.machine = describeMachine(),
                .cases = {},
                .daemonVersion = {},
                .spec = {},
                .ping = {},
                .memory = {},
                .allocations = {}};
  auto measured =
      options.withoutDaemon ? measure(options, objects, nullptr, report) : measureWithDaemon(options, objects, report);
  if (!measured) {
    return std::unexpected(std::move(measured.error()));
  }
  if (auto added = addAllocations(options, objects, report); !added) {
    return std::unexpected(std::move(added.error()));
  }
  return report;
}

} // namespace

} // namespace btfd::bench

int main(int argc, char** argv) {
  using namespace btfd::bench;
  Options options;
  CLI::App app(
      "Measures loads through btfd against libbpf and against the bare bpf(2) calls. Needs the right to load BPF "
      "programs.");
  app.add_option("--case", options.cases, "Only this case; can be given several times")
      ->check(CLI::IsMember(std::vector<std::string>(kCases.begin(), kCases.end())));
  app.add_option("--iterations", options.iterations, "Turns of each case")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  auto* socket =
      app.add_option("--socket", options.socket, "Measure the daemon behind this socket instead of one of our own");
  app.add_flag("--without-daemon", options.withoutDaemon, "Measure libbpf and the bare calls only")->excludes(socket);
  app.add_flag("--json", options.json, "Print one JSON object");
  CLI11_PARSE(app, argc, argv);

  const auto report = run(options);
  if (!report) {
    std::cerr << "btfd-bench: " << report.error().message << '\n';
    return EXIT_FAILURE;
  }
  if (options.json) {
    std::cout << toJson(*report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } else {
    std::cout << toText(*report);
  }
  return EXIT_SUCCESS;
}
