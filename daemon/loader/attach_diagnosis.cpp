#include "attach_diagnosis.h"

#include "base/near_misses.h"
#include "kernel_names.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace btfd::loader {

namespace {

/// Names of the directories in `directory`.
std::vector<std::string> directoriesIn(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.is_directory(error)) {
      names.push_back(entry.path().filename().string());
    }
  }
  return names;
}

/// Samples a second that an event may ask for; 0 where the kernel does not say.
std::uint64_t maximumSampleRate() {
  std::ifstream file("/proc/sys/kernel/perf_event_max_sample_rate");
  std::uint64_t rate = 0;
  file >> rate;
  return rate;
}

} // namespace

std::string whyNoTracepoint(std::string_view category, std::string_view name, int code, const TracefsPlaces& places) {
  if (code != ENOENT) {
    return {};
  }
  const std::string& root = tracefsRoot(places);
  const std::filesystem::path events = root + "/events";
  if (::access(events.c_str(), F_OK) < 0) {
    return errno == EACCES ? "the daemon may not look into " + root
                           : "tracefs, where tracepoints are looked up, is not mounted; mount it with: mount -t "
                             "tracefs tracefs " +
                                 root;
  }
  const std::string wanted(category);
  const std::vector<std::string> categories = directoriesIn(events);
  if (std::ranges::find(categories, wanted) == categories.end()) {
    return "the kernel has no tracepoint category '" + wanted + "'" + didYouMean(nearMisses(category, categories));
  }
  return "the kernel has no tracepoint '" + std::string(name) + "' in category " + wanted +
         didYouMean(nearMisses(name, directoriesIn(events / wanted)));
}

int tracepointError(const std::string& category, const std::string& name, const TracefsPlaces& places) {
  const std::string id = tracefsRoot(places) + "/events/" + category + "/" + name + "/id";
  return ::access(id.c_str(), R_OK) == 0 ? 0 : errno;
}

std::string whyNoUprobe(const UserBinary& binary, const std::vector<std::string>& functions, int code,
                        const std::vector<std::string>& warnings) {
  const auto warnedOf = [&](std::string_view text) {
    return std::ranges::any_of(warnings, [&](const std::string& each) { return each.contains(text); });
  };
  // Of attach_uprobe_opts in libbpf.
  if (warnedOf("failed to resolve full path")) {
    return "there is no '" + binary.name +
           "' where programs and libraries are looked for ($PATH, $LD_LIBRARY_PATH, /usr/lib and "
           "the like); give its path";
  }
  if (code == ESRCH) {
    return "there is no such process";
  }
  if (code != ENOENT) {
    return {};
  }
  if (::access("/sys/bus/event_source/devices/uprobe/type", F_OK) < 0) {
    return "this kernel has no uprobes (CONFIG_UPROBE_EVENTS)";
  }
  const std::vector<std::string> known = functionsIn(binary);
  const auto missing = std::ranges::find_if(
      functions, [&](const std::string& name) { return !std::ranges::binary_search(known, name); });
  return missing == functions.end()
             ? std::string()
             : "'" + binary.name + "' has no function '" + *missing +
                   "' in its symbol table; it may be stripped, or the function be inlined: an offset does without" +
                   didYouMean(nearMisses(*missing, known));
}

std::string whyNoUsdt(const UserBinary& binary, const std::string& probe, int code,
                      const std::vector<std::string>& warnings) {
  const auto warnedOf = [&](std::string_view text) {
    return std::ranges::any_of(warnings, [&](const std::string& each) { return each.contains(text); });
  };
  if (code == ENOENT) {
    const auto known = usdtProbesIn(binary);
    if (known.empty()) {
      return "'" + binary.name + "' has no USDT probes (no notes of stapsdt)";
    }
    return std::ranges::find(known, probe) != known.end()
               ? std::string()
               : "'" + binary.name + "' has no USDT probe '" + probe + "'" + didYouMean(nearMisses(probe, known));
  }
  if (warnedOf("attaching to shared libraries without specific PID")) {
    return "on this kernel (cookies of uprobes came with Linux 5.15) a USDT probe in a library, or in a program that "
           "is "
           "position-independent, needs field pid";
  }
  if (warnedOf("within PID")) {
    return "the process has not mapped '" + binary.name + "'";
  }
  return code == E2BIG ? "the object has no room for more USDT attachments: BPF_USDT_MAX_SPEC_CNT, defined before "
                         "bpf/usdt.bpf.h is included, says how many there may be"
                       : "";
}

std::string whyNotTraced(enum bpf_attach_type type, const std::string& target, bool withCookie, int code) {
  if (withCookie && (code == EINVAL || code == E2BIG)) {
    return "cookies of such programs take Linux 5.19 or later";
  }
  if (code == EBUSY) {
    return "function '" + target + "' is being changed otherwise, by a kprobe in its midst or a live patch";
  }
  if (code == E2BIG) {
    return "as many programs as one function can have are attached to '" + target + "'";
  }
  if (type == BPF_LSM_MAC && code == EOPNOTSUPP) {
    return "the kernel was not told to have BPF as a security module (CONFIG_BPF_LSM, and \"bpf\" in lsm= on its "
           "command line)";
  }
  return {};
}

std::string whyNoRawTracepoint(std::string_view name, int code) {
  return code == ENOENT ? "the kernel has no tracepoint '" + std::string(name) + "'" + tracepointsLike(name)
                        : std::string{};
}

std::string whyNoXdp(std::string_view mode, int code) {
  if (code == EBUSY || code == EEXIST) {
    return "another XDP program is attached to the interface, and it takes only one; ip link shows it";
  }
  if (mode == "offload" && (code == EINVAL || code == EOPNOTSUPP)) {
    return "the interface's driver cannot run XDP programs in hardware; xdpMode native or generic does without";
  }
  if (mode == "native" && code == EOPNOTSUPP) {
    return "the interface's driver has no XDP of its own; xdpMode generic works with all";
  }
  return {};
}

std::string whyNoOrder(int code) {
  return code == ENOENT ? "no such program or link is attached there to be before or after" : "";
}

std::string whyNoNetkit(int code) {
  if (code == ENXIO) {
    return "the interface is no netkit device";
  }
  if (code == EACCES) {
    return "the interface is the peer of a netkit pair; programs, also those for the peer, are attached by the primary";
  }
  return code == EINVAL ? "this kernel may have no netkit (CONFIG_NETKIT, Linux 6.7)" : whyNoOrder(code);
}

std::string whyNoTcFilter(std::uint32_t priority, int code) {
  if (code == ENOENT) {
    return "this kernel has no clsact qdisc or no BPF filters (CONFIG_NET_SCH_INGRESS, CONFIG_NET_CLS_BPF)";
  }
  if (code == EEXIST) {
    return "there is a filter with this priority and handle already; without handle, one is chosen that is free";
  }
  return code == EINVAL
             ? "a filter of another kind may have priority " + std::to_string(priority) +
                   ", or the interface a qdisc ingress instead of clsact; tc filter show and tc qdisc show tell"
             : "";
}

std::string whyNoPerfEvent(const PerfEvent& event, int code) {
  if (event.type == "hardware" && (code == ENOENT || code == EOPNOTSUPP)) {
    return "this machine has no performance counters (PMU) for it, as is usual for virtual machines; software events "
           "such as cpu-clock work everywhere";
  }
  const std::uint64_t maximum = maximumSampleRate();
  if (code == EINVAL && event.attributes.freq != 0 && event.attributes.sample_freq > maximum) {
    return "a frequency may be at most kernel.perf_event_max_sample_rate, which is " + std::to_string(maximum);
  }
  return code == ESRCH ? "there is no such process" : "";
}

} // namespace btfd::loader
