#include "update_job.h"

#include "attach_diagnosis.h"
#include "attach_request.h"
#include "network_namespace.h"
#include "object/libbpf_log.h"
#include "tc_filter.h"

#include <bpf/bpf.h>

#include <cerrno>
#include <string>

#include <sys/socket.h>

#ifndef SO_ATTACH_BPF
#include <asm/socket.h>
#endif

namespace btfd::loader {

namespace {

enum bpf_prog_type typeOf(BorrowedFd program) {
  struct bpf_prog_info info{};
  __u32 length = sizeof(info);
  const int error = bpf_prog_get_info_by_fd(program.get(), &info, &length);
  return static_cast<enum bpf_prog_type>(error < 0 ? 0U : info.type);
}

/// Returns 0 or an errno value.
int updateLink(BorrowedFd link, BorrowedFd program, BorrowedFd old) {
  // With the old one, it is refused if somebody else has updated the link meanwhile.
  LIBBPF_OPTS(bpf_link_update_opts, options, .flags = old ? static_cast<__u32>(BPF_F_REPLACE) : 0U,
              .old_prog_fd = old ? static_cast<__u32>(old.get()) : 0U);
  return bpf_link_update(link.get(), program.get(), &options) < 0 ? errno : 0;
}

int updateSocket(BorrowedFd socket, BorrowedFd program) {
  const int number = program.get();
  return ::setsockopt(socket.get(), SOL_SOCKET, SO_ATTACH_BPF, &number, sizeof(number)) < 0 ? errno : 0;
}

/// There are kinds of links that the kernel updates, and others.
std::string whyNoUpdate(BorrowedFd link, const std::string& kind, int code) {
  if (code == EPERM) {
    return "its program is not the one that btfd attached: somebody else may have updated it";
  }
  struct bpf_link_info info{};
  __u32 length = sizeof(info);
  if (bpf_link_get_info_by_fd(link.get(), &info, &length) < 0) {
    info.type = BPF_LINK_TYPE_UNSPEC;
  }
  switch (info.type) {
  case BPF_LINK_TYPE_XDP:
  case BPF_LINK_TYPE_TCX:
  case BPF_LINK_TYPE_NETKIT:
  case BPF_LINK_TYPE_CGROUP:
  case BPF_LINK_TYPE_NETNS:
  case BPF_LINK_TYPE_ITER:
    return code == ENOLINK ? "what it was attached to is gone"
                           : "the program has to be of the same type, and for the same kind of attachment";
  default:
    return "the kernel updates no links of kind " + kind + "; attach the new program, then detach this link";
  }
}

} // namespace

Outcome<JobReply> runUpdateJob(const nlohmann::json& request, RequestDescriptors& descriptors) {
  const BorrowedFd link = descriptors.held(request.at("linkDescriptor"));
  const BorrowedFd program = descriptors.held(request.at("programDescriptor"));
  const auto old = request.find("oldProgramDescriptor");
  const bool isSocket = request.value("isSocket", false);
  const int code = isSocket ? updateSocket(link, program)
                            : updateLink(link, program, old == request.end() ? BorrowedFd(-1) : descriptors.held(*old));
  if (code == 0) {
    return JobReply{};
  }
  const auto kind = request.value("kind", "");
  return std::unexpected(attachFailure(request.value("program", ""), typeOf(program),
                                       kind + " " + request.value("target", "") + " in place of another", code,
                                       isSocket ? "" : whyNoUpdate(link, kind, code), {}));
}

Outcome<JobReply> runTcReplaceJob(const nlohmann::json& request, RequestDescriptors& descriptors) {
  const object::LibbpfLog log;
  const BorrowedFd program = descriptors.held(request.at("programDescriptor"));
  const auto filter = tcFilterOf(request);
  NetworkNamespaceScope scope;
  const auto descriptor = request.find("namespaceDescriptor");
  auto done = descriptor == request.end() ? Result<void>{} : scope.enter(descriptors.held(*descriptor));
  if (done && typeOf(program) != BPF_PROG_TYPE_SCHED_CLS) {
    done = fail("a tc filter runs programs for tc", EINVAL);
  }
  if (done) {
    done = replaceTcFilter(filter, program.get());
  }
  if (!done) {
    return std::unexpected(attachFailure(request.value("program", ""), typeOf(program),
                                         "tc " + request.value("target", "") + " in place of another",
                                         done.error().code, done.error().message, log.warnings()));
  }
  return JobReply{};
}

} // namespace btfd::loader
