#include "capabilities.h"

#include <array>
#include <cerrno>
#include <string_view>

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace btfd::service {

namespace {

struct Needed {
  unsigned capability;
  std::string_view name;
  std::string_view fails;
};

/// As kernel/bpf/syscall.c asks for them (bpf_prog_load).
constexpr std::array kNeeded{
    Needed{CAP_BPF, "CAP_BPF", "no object can be loaded"},
    Needed{CAP_PERFMON, "CAP_PERFMON",
           "no tracing program (kprobe, uprobe, tracepoint, fentry, perf_event and the like) can be loaded"},
    Needed{CAP_NET_ADMIN, "CAP_NET_ADMIN",
           "no program for the network or for cgroups (xdp, tc, cgroup_skb and the like) can be loaded"},
};

bool has(std::uint64_t effective, unsigned capability) {
  return (effective >> capability & 1U) != 0;
}

} // namespace

Result<std::uint64_t> effectiveCapabilities() {
  struct __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<struct __user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) < 0) {
    return failErrno("cannot look at the capabilities of this process", errno);
  }
  return sets[0].effective | static_cast<std::uint64_t>(sets[1].effective) << 32U;
}

std::string missingCapabilities(std::uint64_t effective) {
  if (has(effective, CAP_SYS_ADMIN)) {
    return {}; // stands for each of them, as before 5.8, which had no others
  }
  std::string missing;
  for (const Needed& needed : kNeeded) {
    if (!has(effective, needed.capability)) {
      missing +=
          (missing.empty() ? "" : "; ") + ("without " + std::string(needed.name)) + " " + std::string(needed.fails);
    }
  }
  return missing.empty() ? ""
                         : "capabilities are missing: " + missing +
                               "; start btfd as root or by its unit, btfd.service, or give it CAP_SYS_ADMIN, which "
                               "stands for all of them";
}

} // namespace btfd::service
