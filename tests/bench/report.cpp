#include "report.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <iomanip>
#include <sstream>

namespace btfd::bench {

namespace {

nlohmann::json json(const Percentiles& percentiles) {
  return {{"p50", percentiles.p50}, {"p99", percentiles.p99}};
}

nlohmann::json json(const CaseResult& result) {
  nlohmann::json out{{"iterations", result.iterations},
                     {"objectBytes", result.objectBytes},
                     {"bareCalls", result.bareCalls},
                     {"libbpfMs", json(result.libbpfMs)},
                     {"bareMs", json(result.bareMs)}};
  if (result.engineMs) {
    out["engineMs"] = json(*result.engineMs);
  }
  if (result.daemon && result.daemonCached) {
    out["daemonMs"] = json(result.daemon->loadAndUnloadMs);
    out["daemonLoadMs"] = json(result.daemon->loadMs);
    out["daemonCachedMs"] = json(result.daemonCached->loadAndUnloadMs);
    out["daemonCachedLoadMs"] = json(result.daemonCached->loadMs);
  }
  return out;
}

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return std::move(out).str();
}

std::string both(const Percentiles& percentiles) {
  return fixed(percentiles.p50, 2) + " / " + fixed(percentiles.p99, 2);
}

/// For what takes a fraction of a millisecond.
std::string finer(const Percentiles& percentiles) {
  return fixed(percentiles.p50, 3) + " / " + fixed(percentiles.p99, 3);
}

std::string ratio(double numerator, double denominator) {
  return denominator > 0 ? fixed(numerator / denominator, 3) : "-";
}

constexpr int kNameWidth = 10;
constexpr int kTimeWidth = 18;
constexpr int kRatioWidth = 15;
constexpr double kMebibyte = 1024.0 * 1024.0;

void writeRow(std::ostringstream& out, const std::vector<std::string>& times, const std::vector<std::string>& ratios) {
  for (const std::string& time : times) {
    out << std::right << std::setw(kTimeWidth) << time;
  }
  for (const std::string& value : ratios) {
    out << std::setw(kRatioWidth) << value;
  }
  out << '\n';
}

void writeCases(std::ostringstream& out, const Report& report) {
  out << "Milliseconds, p50 / p99. libbpf: open, load, close. bare: the bpf(2) calls of that load, replayed.\n"
         "daemon: Load and Unload through the socket, of an object not seen before; cached: of one seen before.\n"
         "engine: the CO-RE relocations alone.\n\n"
      << std::left << std::setw(kNameWidth) << "case";
  writeRow(out, {"libbpf", "bare", "daemon", "cached", "daemon, Load only", "engine"},
           {"daemon/libbpf", "daemon/bare", "cached/bare"});
  for (const auto& [name, result] : report.cases) {
    out << std::left << std::setw(kNameWidth) << name;
    const std::string engine = result.engineMs ? finer(*result.engineMs) : "-";
    if (!result.daemon || !result.daemonCached) {
      writeRow(out, {both(result.libbpfMs), both(result.bareMs), "-", "-", "-", engine}, {"-", "-", "-"});
      continue;
    }
    const double daemon = result.daemon->loadAndUnloadMs.p50;
    const double cached = result.daemonCached->loadAndUnloadMs.p50;
    writeRow(out,
             {both(result.libbpfMs), both(result.bareMs), both(result.daemon->loadAndUnloadMs),
              both(result.daemonCached->loadAndUnloadMs), both(result.daemon->loadMs), engine},
             {ratio(daemon, result.libbpfMs.p50), ratio(daemon, result.bareMs.p50), ratio(cached, result.bareMs.p50)});
  }
}

void writeDaemon(std::ostringstream& out, const Report& report) {
  for (const auto& [name, allocations] : report.allocations) {
    out << "allocations of a load, " << name << ": " << fixed(allocations.count, 0) << ", "
        << fixed(allocations.bytes / kMebibyte, 2) << " MiB\n";
  }
  if (report.spec) {
    out << "kernel BTF: parsed in " << fixed(report.spec->parseMs, 2) << " ms, indexed in "
        << fixed(report.spec->indexMs, 2) << " ms, "
        << fixed(static_cast<double>(report.spec->privateBytes) / kMebibyte, 2) << " MiB private\n";
  }
  if (report.ping) {
    out << "ping: " << both({report.ping->ms.p50, report.ping->ms.p99}) << " ms, " << fixed(report.ping->perSecond, 0)
        << " a second on one connection\n";
  }
  if (report.memory) {
    out << "memory: " << report.memory->processes << " processes, "
        << fixed(static_cast<double>(report.memory->pssBytes) / kMebibyte, 1) << " MiB (Pss), the daemon's RSS "
        << fixed(static_cast<double>(report.memory->rootRssBytes) / kMebibyte, 1) << " MiB\n";
  }
}

} // namespace

nlohmann::json toJson(const Report& report) {
  const Machine& machine = report.machine;
  nlohmann::json out{{"machine",
                      {{"cpu", machine.cpu},
                       {"cores", machine.cores},
                       {"kernel", machine.kernel},
                       {"date", machine.date},
                       {"libbpf", machine.libbpf}}}};
  for (const auto& [name, result] : report.cases) {
    out["cases"][name] = json(result);
    if (const auto found = report.allocations.find(name); found != report.allocations.end()) {
      out["cases"][name]["allocations"] = std::llround(found->second.count);
      out["cases"][name]["allocatedBytes"] = std::llround(found->second.bytes);
    }
  }
  if (report.daemonVersion) {
    out["machine"]["btfd"] = *report.daemonVersion;
  }
  if (report.spec) {
    out["spec"] = {{"parseMs", report.spec->parseMs},
                   {"indexMs", report.spec->indexMs},
                   {"privateBytes", report.spec->privateBytes}};
  }
  if (report.ping) {
    out["ping"] = {
        {"p50Ms", report.ping->ms.p50}, {"p99Ms", report.ping->ms.p99}, {"perSecond", report.ping->perSecond}};
  }
  if (report.memory) {
    out["memory"] = {{"processes", report.memory->processes},
                     {"rssBytes", report.memory->rssBytes},
                     {"pssBytes", report.memory->pssBytes},
                     {"daemonRssBytes", report.memory->rootRssBytes}};
  }
  return out;
}

std::string toText(const Report& report) {
  const Machine& machine = report.machine;
  std::ostringstream out;
  out << machine.cpu << ", " << machine.cores << " cores, Linux " << machine.kernel << ", libbpf " << machine.libbpf
      << ", btfd " << report.daemonVersion.value_or("not measured") << ", " << machine.date << "\n\n";
  writeCases(out, report);
  out << '\n';
  writeDaemon(out, report);
  return std::move(out).str();
}

} // namespace btfd::bench
