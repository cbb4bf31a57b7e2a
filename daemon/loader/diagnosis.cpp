#include "diagnosis.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include <linux/capability.h>

namespace btfd::loader {

namespace {

std::string readFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// CapEff of this process (proc_pid_status(5)).
std::uint64_t effectiveCapabilities() {
  const std::string status = readFile("/proc/self/status");
  constexpr std::string_view kField = "CapEff:";
  const auto at = status.find(kField);
  return at == std::string::npos ? 0 : std::stoull(status.substr(at + kField.size()), nullptr, 16);
}

bool isNetworking(enum bpf_prog_type type) {
  switch (type) {
  case BPF_PROG_TYPE_XDP:
  case BPF_PROG_TYPE_SCHED_CLS:
  case BPF_PROG_TYPE_SCHED_ACT:
  case BPF_PROG_TYPE_CGROUP_SKB:
  case BPF_PROG_TYPE_CGROUP_SOCK:
  case BPF_PROG_TYPE_CGROUP_SOCK_ADDR:
  case BPF_PROG_TYPE_CGROUP_SOCKOPT:
  case BPF_PROG_TYPE_SOCK_OPS:
  case BPF_PROG_TYPE_SK_SKB:
  case BPF_PROG_TYPE_SK_MSG:
  case BPF_PROG_TYPE_SK_LOOKUP:
  case BPF_PROG_TYPE_SK_REUSEPORT:
  case BPF_PROG_TYPE_FLOW_DISSECTOR:
  case BPF_PROG_TYPE_LWT_IN:
  case BPF_PROG_TYPE_LWT_OUT:
  case BPF_PROG_TYPE_LWT_XMIT:
  case BPF_PROG_TYPE_NETFILTER:
    return true;
  default:
    return false;
  }
}

/// What bpf(2) wants for a program of `type` beside CAP_BPF (kernel/bpf/syscall.c, is_net_admin_prog_type and
/// is_perfmon_prog_type). CAP_SYS_ADMIN stands in for each of them.
std::vector<std::pair<unsigned, std::string_view>> neededCapabilities(enum bpf_prog_type type) {
  std::vector<std::pair<unsigned, std::string_view>> needed{{CAP_BPF, "CAP_BPF"}};
  if (isNetworking(type)) {
    needed.emplace_back(CAP_NET_ADMIN, "CAP_NET_ADMIN");
  } else if (type != BPF_PROG_TYPE_SOCKET_FILTER) {
    needed.emplace_back(CAP_PERFMON, "CAP_PERFMON");
  }
  return needed;
}

std::string missingCapabilities(enum bpf_prog_type type) {
  const std::uint64_t effective = effectiveCapabilities();
  const auto has = [&](unsigned capability) { return (effective >> capability & 1U) != 0; };
  std::string missing;
  if (has(CAP_SYS_ADMIN)) {
    return missing;
  }
  for (const auto& [capability, name] : neededCapabilities(type)) {
    if (!has(capability)) {
      missing += (missing.empty() ? "" : " and ") + std::string(name);
    }
  }
  return missing;
}

/// The lockdown mode in force, as kernel_lockdown(7) names it; empty if the kernel does not show it.
std::string lockdownMode() {
  const std::string modes = readFile("/sys/kernel/security/lockdown");
  const auto begin = modes.find('[');
  const auto end = modes.find(']', begin);
  return begin == std::string::npos || end == std::string::npos ? "" : modes.substr(begin + 1, end - begin - 1);
}

std::string explainEperm(enum bpf_prog_type type) {
  if (const std::string missing = missingCapabilities(type); !missing.empty()) {
    return "the daemon lacks " + missing;
  }
  const std::string lockdown = lockdownMode();
  if (lockdown == "integrity" || lockdown == "confidentiality") {
    return "the daemon has the capabilities, but the kernel is locked down (mode " + lockdown +
           "; see kernel_lockdown(7))";
  }
  if (lockdown.empty()) {
    return "the daemon has the capabilities, so a security policy of the kernel forbids it: lockdown (whose state this "
           "kernel does not show in /sys/kernel/security/lockdown) or another security module";
  }
  return "the daemon has the capabilities and the kernel is not locked down, so another security module forbids it";
}

} // namespace

std::string explain(int code, enum bpf_prog_type type) {
  return code == EPERM ? explainEperm(type) : std::string{};
}

std::string_view rejectionReason(std::string_view log) {
  // The reason is the last line before the statistics (kernel/bpf/verifier.c, print_verification_stats).
  constexpr std::array<std::string_view, 5> kStatistics{"processed ", "verification time ", "stack depth ",
                                                        "insns processed", "peak_states "};
  while (!log.empty()) {
    while (log.ends_with('\n') || log.ends_with('\0')) {
      log.remove_suffix(1);
    }
    const auto begin = log.rfind('\n');
    const std::string_view line = begin == std::string_view::npos ? log : log.substr(begin + 1);
    const bool statistics = std::ranges::any_of(kStatistics, [&](auto prefix) { return line.starts_with(prefix); });
    if (!statistics && !line.empty()) {
      return line;
    }
    log = begin == std::string_view::npos ? std::string_view{} : log.substr(0, begin);
  }
  return {};
}

std::optional<std::uint32_t> poisonedInstruction(std::string_view log) {
  // As in "12: (85) call unknown#195896080" (kernel/bpf/disasm.c, __func_get_name).
  constexpr std::string_view kCall = ": (85) call unknown#195896080";
  const auto at = log.rfind(kCall);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const auto line = log.substr(0, at).rfind('\n');
  const std::string_view number = log.substr(line + 1, at - (line + 1)); // npos + 1 is 0: the log's first line
  std::uint32_t instruction = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), instruction);
  return error == std::errc{} && end == number.data() + number.size() ? std::optional(instruction) : std::nullopt;
}

std::string rejectionHint(std::string_view log) {
  const auto says = [&](std::string_view text) { return log.find(text) != std::string_view::npos; };
  if (says("cannot call GPL-restricted function") || says("cannot call GPL only function") ||
      says("GPL-incompatible program")) {
    return "the object's license section does not say a GPL-compatible license, such as char LICENSE[] "
           "SEC(\"license\") = "
           "\"GPL\"";
  }
  if (says("BPF program is too large") || says(" jumps is too complex")) {
    return "the program is too complex for the verifier: shorten loops or split it";
  }
  // As in "unknown func bpf_skb_load_bytes#26", until Linux 6.9 also where the kernel has it (check_helper_call in
  // kernel/bpf/verifier.c); what there is none of at all is "invalid func unknown#1234".
  if (const auto reason = rejectionReason(log); reason.starts_with("unknown func bpf_")) {
    return "this kernel has no such helper for programs of this type; later ones, or other types, may";
  }
  // As in "R0 invalid mem access 'map_value_or_null'" (kernel/bpf/verifier.c, reg_type_str).
  if (const auto reason = rejectionReason(log); reason.contains("invalid mem access") && reason.contains("_or_null'")) {
    return "the pointer may be NULL there: compare it with NULL before it is used, as what bpf_map_lookup_elem() gives";
  }
  return {};
}

std::string_view logTail(std::string_view log, std::size_t limit) {
  if (log.size() <= limit) {
    return log;
  }
  const auto begin = log.size() - limit;
  // A newline just before what fits means that it begins with a line; one at the very end ends the only line there is.
  const auto newline = log.find('\n', begin - 1);
  return newline == std::string_view::npos || newline + 1 == log.size() ? log.substr(begin) : log.substr(newline + 1);
}

} // namespace btfd::loader
