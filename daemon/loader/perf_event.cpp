#include "perf_event.h"

#include "base/near_misses.h"

#include <bpf/libbpf.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <optional>
#include <ranges>
#include <string_view>

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace btfd::loader {

namespace {

struct EventName {
  std::string_view type;
  std::string_view name;
  std::uint32_t perfType;
  std::uint64_t config;
};

/// perf_event_open(2)'s generalised events under the names that perf list gives them.
constexpr std::array kEvents{
    EventName{"software", "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
    EventName{"software", "task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    EventName{"software", "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    EventName{"software", "minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
    EventName{"software", "major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    EventName{"software", "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    EventName{"software", "cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    EventName{"software", "alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
    EventName{"software", "emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS},
    EventName{"hardware", "cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    EventName{"hardware", "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    EventName{"hardware", "cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    EventName{"hardware", "cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    EventName{"hardware", "branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    EventName{"hardware", "branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    EventName{"hardware", "bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
    EventName{"hardware", "ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
};

Result<EventName> findEvent(const std::string& type, const std::string& name) {
  std::vector<std::string> known;
  for (const EventName& event : kEvents) {
    if (event.type == type && event.name == name) {
      return event;
    }
    if (event.type == type) {
      known.emplace_back(event.name);
    }
  }
  if (known.empty()) {
    return fail("there is no perf event type '" + type + "'; it is software or hardware", EINVAL);
  }
  return fail("there is no " + type + " event '" + name + "'" +
                  didYouMean(nearMisses(name, known) | std::views::take(1)),
              EINVAL);
}

std::optional<std::int64_t> number(const nlohmann::json& event, const char* field) {
  const auto found = event.find(field);
  return found == event.end() || !found->is_number_integer() ? std::nullopt : std::optional(found->get<std::int64_t>());
}

Result<UniqueFd> openOn(const PerfEvent& event, int cpu) {
  perf_event_attr attributes = event.attributes; // the kernel writes its size into it if that is not to its liking
  UniqueFd opened(
      static_cast<int>(::syscall(SYS_perf_event_open, &attributes, event.pid, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!opened) {
    return failErrno("perf_event_open on CPU " + std::to_string(cpu), errno);
  }
  return opened;
}

} // namespace

Result<PerfEvent> readPerfEvent(const nlohmann::json& request) {
  const auto event = findEvent(request.value("type", ""), request.value("event", ""));
  if (!event) {
    return std::unexpected(event.error());
  }
  const auto frequency = number(request, "frequency");
  const auto period = number(request, "period");
  if (frequency.has_value() == period.has_value() || frequency.value_or(1) <= 0 || period.value_or(1) <= 0) {
    return fail("a perf event needs either a frequency or a period, which has to be positive", EINVAL);
  }
  PerfEvent read{.type = std::string(event->type), .cpu = std::nullopt, .description = std::string(event->name)};
  perf_event_attr& attributes = read.attributes;
  attributes.size = sizeof(attributes);
  attributes.type = event->perfType;
  attributes.config = event->config;
  attributes.freq = frequency ? 1 : 0;
  attributes.sample_freq = static_cast<std::uint64_t>(frequency ? *frequency : *period);

  const auto givenPid = number(request, "pid");
  if (givenPid && (*givenPid < 0 || *givenPid > std::numeric_limits<pid_t>::max())) {
    return fail("there is no process " + std::to_string(*givenPid), EINVAL);
  }
  read.pid = static_cast<pid_t>(givenPid.value_or(-1));
  const auto onlyCpu = number(request, "cpu");
  if (onlyCpu && (*onlyCpu < 0 || *onlyCpu >= libbpf_num_possible_cpus())) {
    return fail("there is no CPU " + std::to_string(*onlyCpu), EINVAL);
  }
  if (onlyCpu) {
    read.cpu = static_cast<int>(*onlyCpu);
  }
  read.description +=
      frequency ? " at " + std::to_string(*frequency) + " Hz" : " each " + std::to_string(*period) + " events";
  read.description += onlyCpu ? " on CPU " + std::to_string(*onlyCpu) : " on each CPU";
  return read;
}

Result<std::vector<UniqueFd>> openPerfEvent(const PerfEvent& event) {
  std::vector<UniqueFd> opened;
  const int cpus = libbpf_num_possible_cpus();
  for (int cpu = 0; cpu < cpus; ++cpu) {
    if (event.cpu && cpu != *event.cpu) {
      continue;
    }
    auto descriptor = openOn(event, cpu);
    if (!descriptor && descriptor.error().code == ENODEV && !event.cpu) {
      continue; // possible, but not online
    }
    if (!descriptor) {
      return std::unexpected(std::move(descriptor.error()));
    }
    opened.push_back(std::move(*descriptor));
  }
  return opened;
}

} // namespace btfd::loader
