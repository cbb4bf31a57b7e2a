#include "tc_filter.h"

#include "netlink_dump.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <stdexcept>

#include <linux/pkt_sched.h>

namespace btfd::loader {

namespace {

/// The first that the kernel chooses for a filter without one (net/sched/cls_api.c, tcf_auto_prio).
constexpr std::uint32_t kLastPriority = 0xC000;

bpf_tc_hook hookOf(const TcFilter& filter) {
  LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = filter.interface,
              .attach_point = filter.ingress ? BPF_TC_INGRESS : BPF_TC_EGRESS);
  return hook;
}

std::uint32_t parentOf(bool ingress) {
  return TC_H_MAKE(TC_H_CLSACT, ingress ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS);
}

/// The program that the filter runs; error ENOENT if there is no such filter.
Result<std::uint32_t> programOf(const TcFilter& filter) {
  const bpf_tc_hook hook = hookOf(filter);
  LIBBPF_OPTS(bpf_tc_opts, options, .handle = filter.handle, .priority = filter.priority);
  const int error = bpf_tc_query(&hook, &options);
  return error < 0 ? Result<std::uint32_t>(failErrno("cannot look at the tc filter", -error)) : options.prog_id;
}

/// Whether the qdisc, or the interface, is gone: so is all that was on it.
bool isGone(int code) {
  return code == ENOENT || code == ENODEV || code == EINVAL;
}

/// Whether the filter is there and the one that it was.
Result<bool> isThere(const TcFilter& filter) {
  const auto program = programOf(filter);
  if (!program) {
    return isGone(program.error().code) ? Result<bool>(false) : std::unexpected(program.error());
  }
  return std::ranges::find(filter.programs, *program) != filter.programs.end();
}

template <typename T>
T number(const nlohmann::json& json, const char* key) {
  const nlohmann::json& value = json.at(key);
  if (!value.is_number_integer() || value < 0 || value > std::numeric_limits<T>::max()) {
    throw std::out_of_range(std::string(key) + " is no number, or does not fit");
  }
  return value.get<T>();
}

} // namespace

nlohmann::json toJson(const TcFilter& filter) {
  nlohmann::json json;
  json["networkNamespace"] = filter.networkNamespace;
  json["interface"] = filter.interface;
  json["ingress"] = filter.ingress;
  json["priority"] = filter.priority;
  json["handle"] = filter.handle;
  json["handleGiven"] = filter.handleGiven;
  json["qdiscMissing"] = filter.qdiscMissing;
  json["programs"] = filter.programs;
  return json;
}

TcFilter tcFilterOf(const nlohmann::json& json) {
  return {.networkNamespace = number<std::uint64_t>(json, "networkNamespace"),
          .interface = number<int>(json, "interface"),
          .ingress = json.at("ingress").get<bool>(),
          .priority = number<std::uint32_t>(json, "priority"),
          .handle = number<std::uint32_t>(json, "handle"),
          .handleGiven = json.at("handleGiven").get<bool>(),
          .qdiscMissing = json.at("qdiscMissing").get<bool>(),
          .programs = json.at("programs").get<std::vector<std::uint32_t>>()};
}

Result<void> planTcFilter(TcFilter& filter) {
  const auto present = tcFiltersOn(filter.interface, parentOf(filter.ingress));
  const auto hasQdisc = hasClsact(filter.interface);
  if (!present || !hasQdisc) {
    return std::unexpected(!present ? present.error() : hasQdisc.error());
  }
  filter.qdiscMissing = !*hasQdisc;
  if (filter.priority == 0) {
    const auto first = std::ranges::min_element(*present, {}, &TcFilterEntry::priority);
    filter.priority =
        first == present->end() || first->priority > kLastPriority ? kLastPriority : std::max(1U, first->priority - 1);
  }
  if (filter.handle == 0) {
    const auto taken = [&](std::uint32_t handle) {
      return std::ranges::any_of(*present, [&](const TcFilterEntry& entry) {
        return entry.priority == filter.priority && entry.handle == handle;
      });
    };
    for (filter.handle = 1; taken(filter.handle);) {
      ++filter.handle;
    }
  }
  return {};
}

Result<bool> addTcFilter(const TcFilter& filter, int program) {
  bpf_tc_hook hook = hookOf(filter);
  const int made = bpf_tc_hook_create(&hook);
  if (made < 0 && made != -EEXIST) {
    return failErrno("cannot make a clsact qdisc", -made);
  }
  LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = program, .handle = filter.handle, .priority = filter.priority);
  if (const int error = bpf_tc_attach(&hook, &options); error < 0) {
    if (made == 0) {
      hook.attach_point = static_cast<bpf_tc_attach_point>(BPF_TC_INGRESS | BPF_TC_EGRESS);
      bpf_tc_hook_destroy(&hook);
    }
    return failErrno("cannot make a tc filter", -error);
  }
  return made == 0;
}

Result<void> replaceTcFilter(const TcFilter& filter, int program) {
  const auto there = isThere(filter);
  if (!there || !*there) {
    return there ? fail("the tc filter is not there any more", ENOENT) : std::unexpected(there.error());
  }
  const bpf_tc_hook hook = hookOf(filter);
  LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = program, .flags = BPF_TC_F_REPLACE, .handle = filter.handle,
              .priority = filter.priority);
  const int error = bpf_tc_attach(&hook, &options);
  return error < 0 ? failErrno("cannot replace the tc filter's program", -error) : Result<void>{};
}

Result<void> removeTcFilter(const TcFilter& filter, bool andQdisc) {
  const auto there = isThere(filter);
  if (!there) {
    return std::unexpected(there.error());
  }
  bpf_tc_hook hook = hookOf(filter);
  LIBBPF_OPTS(bpf_tc_opts, options, .handle = filter.handle, .priority = filter.priority);
  if (const int error = *there ? bpf_tc_detach(&hook, &options) : 0; error < 0 && !isGone(-error)) {
    return failErrno("cannot remove the tc filter", -error);
  }
  if (!andQdisc) {
    return {};
  }
  for (const bool ingress : {true, false}) {
    const auto others = tcFiltersOn(filter.interface, parentOf(ingress));
    if (!others || !others->empty()) {
      return others ? Result<void>{} : std::unexpected(others.error());
    }
  }
  hook.attach_point = static_cast<bpf_tc_attach_point>(BPF_TC_INGRESS | BPF_TC_EGRESS);
  const int error = bpf_tc_hook_destroy(&hook);
  return error < 0 && !isGone(-error) ? failErrno("cannot remove the clsact qdisc", -error) : Result<void>{};
}

} // namespace btfd::loader
