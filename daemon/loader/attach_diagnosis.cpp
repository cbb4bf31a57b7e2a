#include "attach_diagnosis.h"

#include "base/near_misses.h"
#include "kernel_names.h"

#include <bpf/btf.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
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

/// The one of the places that libbpf takes.
const std::string& tracefsRoot(const TracefsPlaces& places) {
  return ::access(places.debugfs.c_str(), F_OK) == 0 ? places.debugfs : places.tracefs;
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

bool kernelHasFunction(std::string_view name, const std::string& symbols) {
  name.remove_prefix(name.find(':') + 1); // npos + 1 is 0
  std::ifstream file(symbols);
  bool any = false;
  // "ffffffff81000000 T name" with "\t[module]" behind those of modules (kernel/kallsyms.c, s_show)
  for (std::string address, type, symbol; file >> address >> type >> symbol;) {
    any = true;
    if (symbol == name && (type == "t" || type == "T" || type == "w" || type == "W")) {
      return true;
    }
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return !any;
}

bool kernelHasKprobes() {
  return ::access("/sys/bus/event_source/devices/kprobe/type", F_OK) == 0;
}

std::string whyNoUprobe(const std::string& binary, const std::string& function, int code,
                        const std::vector<std::string>& warnings) {
  if (code != ENOENT) {
    return {};
  }
  const auto warnedOf = [&](std::string_view text) {
    return std::ranges::any_of(warnings, [&](const std::string& each) { return each.contains(text); });
  };
  // Of elf_find_func_offset and attach_uprobe_opts in libbpf.
  if (warnedOf("failed to resolve full path")) {
    return "there is no '" + binary +
           "' where programs and libraries are looked for ($PATH, $LD_LIBRARY_PATH, /usr/lib and "
           "the like); give its path";
  }
  if (warnedOf("elf: failed to find symbol")) {
    return "'" + binary + "' has no function '" + function +
           "' in its symbol table; it may be stripped, or the "
           "function be inlined: an offset does without";
  }
  return ::access("/sys/bus/event_source/devices/uprobe/type", F_OK) == 0
             ? std::string()
             : "this kernel has no uprobes (CONFIG_UPROBE_EVENTS)";
}

std::string whyNoKernelFunction(std::string_view name, int code, const std::string& symbols, bool hasKprobes) {
  if (code != ENOENT) {
    return {};
  }
  if (kernelHasFunction(name, symbols)) {
    return hasKprobes ? "" : "this kernel has no kprobes (CONFIG_KPROBE_EVENTS)";
  }
  return "the kernel has no function '" + std::string(name) + "'" + kernelNamesLike(name, "", BTF_KIND_FUNC);
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
