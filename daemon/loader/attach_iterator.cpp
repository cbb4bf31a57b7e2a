#include "attach_iterator.h"

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

namespace btfd::loader {

namespace {

struct CgroupOrder {
  std::string_view name;
  enum bpf_cgroup_iter_order order;
};

constexpr std::array kCgroupOrders{
    CgroupOrder{"self", BPF_CGROUP_ITER_SELF_ONLY},
    CgroupOrder{"descendants", BPF_CGROUP_ITER_DESCENDANTS_PRE},
    CgroupOrder{"descendantsFirst", BPF_CGROUP_ITER_DESCENDANTS_POST},
    CgroupOrder{"ancestors", BPF_CGROUP_ITER_ANCESTORS_UP},
};

/// What the kernel is to be told; what `info` refers to is open as long as this is there.
struct Parameters {
  union bpf_iter_link_info info{};
  UniqueFd cgroup;
  /// In words; empty if there are none.
  std::string text;
  /// How many of tasks, map and cgroups they are about: in `info`, these are in the same place.
  int families = 0;
};

Outcome<void> readTask(const AttachRequest& request, Parameters& parameters) {
  const auto process = request.process();
  const auto thread = request.process("tid");
  if (!process || !thread) {
    return std::unexpected(!process ? process.error() : thread.error());
  }
  if (*process && *thread) {
    return request.wrong("tid", "a target has either pid or tid");
  }
  if (*process) {
    parameters.info.task.pid = static_cast<__u32>(**process);
    ++parameters.families;
    parameters.text += " of process " + std::to_string(**process);
  }
  if (*thread) {
    parameters.info.task.tid = static_cast<__u32>(**thread);
    ++parameters.families;
    parameters.text += " of thread " + std::to_string(**thread);
  }
  return {};
}

Outcome<void> readMap(const AttachRequest& request, Parameters& parameters) {
  const auto map = request.text("map");
  if (!map) {
    return {};
  }
  const auto found = request.maps().find(*map);
  if (!found) {
    return std::unexpected(found.error());
  }
  parameters.info.map.map_fd = static_cast<__u32>(bpf_map__fd(*found));
  ++parameters.families;
  parameters.text += " of map " + *map;
  return {};
}

Outcome<void> readCgroup(const AttachRequest& request, Parameters& parameters) {
  const auto directory = request.text("cgroup");
  if (!directory) {
    return request.has("cgroupOrder") ? Outcome<void>(request.missing("cgroup", "the cgroup to begin with"))
                                      : Outcome<void>{};
  }
  auto opened = request.openCgroup(*directory);
  if (!opened) {
    return std::unexpected(std::move(opened.error()));
  }
  parameters.cgroup = std::move(*opened);
  parameters.info.cgroup.cgroup_fd = static_cast<__u32>(parameters.cgroup.get());
  const std::string wanted = request.text("cgroupOrder").value_or("descendants");
  for (const CgroupOrder& order : kCgroupOrders) {
    if (order.name == wanted) {
      parameters.info.cgroup.order = order.order;
    }
  }
  ++parameters.families;
  parameters.text += " of cgroup " + *directory + " (" + wanted + ")";
  return {};
}

std::string whyNoIterator(const std::string& target, bool withParameters, int code) {
  if ((code == EINVAL || code == EBADF) && !withParameters && target.starts_with("bpf_map_elem")) {
    return "it goes through the entries of a map: field map names one of the object's own";
  }
  if ((code == EINVAL || code == E2BIG) && withParameters) {
    return "this iterator, or this kernel's, has no such parameters (of tasks and cgroups: since Linux 6.1)";
  }
  return code == ESRCH ? "there is no such process or thread" : "";
}

} // namespace

Outcome<AttachedLink> attachIterator(AttachRequest& request) {
  if (auto allowed = request.allowOnly({"pid", "tid", "map", "cgroup", "cgroupOrder"}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  Parameters parameters;
  for (const auto read : {&readTask, &readMap, &readCgroup}) {
    if (auto done = read(request, parameters); !done) {
      return std::unexpected(std::move(done.error()));
    }
  }
  if (parameters.families > 1) {
    return request.wrong("map", "an iterator has parameters of tasks, of a map or of cgroups, not several of these");
  }
  const std::string iterator = request.madeFor();
  const std::string target = iterator + parameters.text;
  if (request.onlyChecking()) {
    return AttachRequest::checked("iter", target);
  }
  const bool any = !parameters.text.empty();
  LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = any ? &parameters.info : nullptr,
              .link_info_len = any ? static_cast<__u32>(sizeof(parameters.info)) : 0U);
  return request.finish("iter", target, bpf_program__attach_iter(request.loaded(), &options),
                        [&](int code) { return whyNoIterator(iterator, any, code); });
}

} // namespace btfd::loader
