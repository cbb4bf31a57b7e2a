#include "attach.h"

#include "attach_interface.h"
#include "attach_network.h"
#include "attach_tracing.h"

#include <bpf/bpf.h>

#include <cerrno>
#include <utility>

#include <sys/socket.h>

#ifndef SO_DETACH_BPF
#include <asm/socket.h>
#endif

namespace btfd::loader {

namespace {

Outcome<AttachedLink> dispatch(AttachRequest& request) {
  switch (bpf_program__type(&request.program())) {
  case BPF_PROG_TYPE_TRACING:
    return attachTracing(request);
  case BPF_PROG_TYPE_LSM:
    return bpf_program__expected_attach_type(&request.program()) == BPF_LSM_CGROUP ? attachCgroup(request)
                                                                                   : attachTracing(request);
  case BPF_PROG_TYPE_EXT:
    return attachReplacement(request);
  case BPF_PROG_TYPE_RAW_TRACEPOINT:
  case BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE:
    return attachRawTracepoint(request);
  case BPF_PROG_TYPE_TRACEPOINT:
    return attachTracepoint(request);
  case BPF_PROG_TYPE_KPROBE:
    return attachProbe(request);
  case BPF_PROG_TYPE_PERF_EVENT:
    return attachPerfEvent(request);
  case BPF_PROG_TYPE_XDP:
    return attachXdp(request);
  case BPF_PROG_TYPE_SCHED_CLS:
    return attachTrafficControl(request);
  case BPF_PROG_TYPE_CGROUP_SKB:
  case BPF_PROG_TYPE_CGROUP_SOCK:
  case BPF_PROG_TYPE_CGROUP_SOCK_ADDR:
  case BPF_PROG_TYPE_CGROUP_SOCKOPT:
  case BPF_PROG_TYPE_CGROUP_SYSCTL:
  case BPF_PROG_TYPE_CGROUP_DEVICE:
  case BPF_PROG_TYPE_SOCK_OPS:
    return attachCgroup(request);
  case BPF_PROG_TYPE_SK_LOOKUP:
  case BPF_PROG_TYPE_FLOW_DISSECTOR:
    return attachNetworkNamespace(request);
  case BPF_PROG_TYPE_NETFILTER:
    return attachNetfilter(request);
  case BPF_PROG_TYPE_SK_MSG:
  case BPF_PROG_TYPE_SK_SKB:
    return attachSockmap(request);
  case BPF_PROG_TYPE_SOCKET_FILTER:
    return attachSocketFilter(request);
  case BPF_PROG_TYPE_STRUCT_OPS:
    return request.refused(bpf_program__name(&request.program()), EOPNOTSUPP, [](int) {
      return std::string(
          "a struct_ops program runs once its map is registered, which this version of btfd does not do");
    });
  default:
    return attachBySection(request, libbpf_bpf_prog_type_str(bpf_program__type(&request.program())), {});
  }
}

} // namespace

void detach(AttachedLink& link) {
  if (link.detachBy == DetachBy::socketOption) {
    for (const UniqueFd& socket : link.descriptors) {
      const int unused = 0;
      ::setsockopt(socket.get(), SOL_SOCKET, SO_DETACH_BPF, &unused, sizeof(unused));
    }
  } else if (link.detachBy == DetachBy::programDetach) {
    bpf_prog_detach2(link.descriptors.back().get(), link.descriptors.front().get(), link.attachType);
  }
  link.descriptors.clear();
}

Outcome<AttachedLink> attachProgram(const MapsByName& maps, struct bpf_program& program, const nlohmann::json& target,
                                    const std::string& path, RequestDescriptors& descriptors,
                                    const object::LibbpfLog& log, AttachContext context) {
  AttachRequest request(maps, program, target, path, descriptors);
  request.attachFor(program, log, std::move(context));
  return dispatch(request);
}

Outcome<void> checkTarget(const MapsByName& maps, const struct bpf_program& program, const nlohmann::json& target,
                          const std::string& path, RequestDescriptors& descriptors) {
  AttachRequest request(maps, program, target, path, descriptors);
  auto checked = dispatch(request);
  return checked ? Outcome<void>{} : std::unexpected(std::move(checked.error()));
}

} // namespace btfd::loader
