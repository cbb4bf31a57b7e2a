#include "attach_tracing.h"

#include "attach_diagnosis.h"
#include "attach_iterator.h"
#include "attach_kprobe.h"
#include "attach_uprobe.h"
#include "kernel_names.h"
#include "object/sought_type.h"
#include "perf_event.h"

#include <algorithm>
#include <cctype>
#include <cerrno>

namespace btfd::loader {

namespace {

std::string_view tracingKind(enum bpf_attach_type type) {
  switch (type) {
  case BPF_TRACE_RAW_TP:
    return "tp_btf";
  case BPF_TRACE_FENTRY:
    return "fentry";
  case BPF_TRACE_FEXIT:
    return "fexit";
  case BPF_MODIFY_RETURN:
    return "fmod_ret";
  case BPF_TRACE_FSESSION:
    return "fsession";
  case BPF_TRACE_ITER:
    return "iter";
  case BPF_LSM_MAC:
    return "lsm";
  default:
    return "tracing";
  }
}

/// Whether `name` can be a tracepoint or its category. Both become part of a path below tracefs, which must not lead
/// elsewhere.
bool isTracefsName(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char character) {
    return std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '_' || character == '-';
  });
}

} // namespace

Outcome<AttachedLink> attachBySection(AttachRequest& request, std::string_view kind,
                                      std::initializer_list<std::string_view> fields) {
  if (auto allowed = request.allowOnly(fields); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  if (request.onlyChecking()) {
    return request.checked(kind, sectionTarget(request.section()));
  }
  return request.finish(kind, sectionTarget(request.section()), bpf_program__attach(request.loaded()));
}

Outcome<AttachedLink> attachTracing(AttachRequest& request) {
  const auto type = bpf_program__expected_attach_type(&request.program());
  const std::string_view kind = tracingKind(type);
  if (type == BPF_TRACE_ITER) {
    return attachIterator(request);
  }
  if (auto allowed = request.allowOnly({"cookie"}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  const std::string target = request.madeFor();
  if (request.onlyChecking()) {
    return request.checked(kind, target);
  }
  const auto cookie = request.number("cookie");
  const auto reason = [&](int code) { return whyNotTraced(type, target, cookie.has_value(), code); };
  LIBBPF_OPTS(bpf_trace_opts, options, .cookie = cookie.value_or(0));
  return request.finish(kind, target,
                        bpf_program__attach_trace_opts(request.loaded(), cookie.value_or(0) != 0 ? &options : nullptr),
                        reason);
}

Outcome<AttachedLink> attachReplacement(AttachRequest& request) {
  if (auto allowed = request.allowOnly({}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  const std::string target = request.madeFor();
  if (request.onlyChecking()) {
    return request.checked("freplace", target);
  }
  return request.finish("freplace", target, bpf_program__attach_freplace(request.loaded(), 0, nullptr), [](int code) {
    return code == EINVAL ? "a program can replace a function once only: load it again to attach it again" : "";
  });
}

Outcome<AttachedLink> attachRawTracepoint(AttachRequest& request) {
  if (auto allowed = request.allowOnly({"tracepoint", "cookie"}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  const std::string target = request.text("tracepoint").value_or(sectionTarget(request.section()));
  const auto reason = [&](int code) { return whyNoRawTracepoint(target, code); };
  if (request.onlyChecking()) {
    const auto& type = object::kTracepointType;
    return kernelHas(std::string(type.prefix) + target, type.kind) ? request.checked("raw_tracepoint", target)
                                                                   : request.refused(target, ENOENT, reason);
  }
  LIBBPF_OPTS(bpf_raw_tracepoint_opts, options, .cookie = request.number("cookie").value_or(0));
  return request.finish("raw_tracepoint", target,
                        bpf_program__attach_raw_tracepoint_opts(request.loaded(), target.c_str(), &options), reason);
}

Outcome<AttachedLink> attachTracepoint(AttachRequest& request) {
  if (auto allowed = request.allowOnly({"tracepoint", "cookie"}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  const std::string target = request.text("tracepoint").value_or(sectionTarget(request.section()));
  const auto slash = target.find('/');
  if (slash == std::string::npos || !isTracefsName(target.substr(0, slash)) ||
      !isTracefsName(target.substr(slash + 1))) {
    return request.missing("tracepoint", "a tracepoint as category/name; '" + target + "' is none");
  }
  const std::string category = target.substr(0, slash);
  const std::string name = target.substr(slash + 1);
  const auto reason = [&](int code) { return whyNoTracepoint(category, name, code); };
  if (request.onlyChecking()) {
    const int error = tracepointError(category, name);
    return error == 0 ? request.checked("tracepoint", target) : request.refused(target, error, reason);
  }
  LIBBPF_OPTS(bpf_tracepoint_opts, options, .bpf_cookie = request.number("cookie").value_or(0));
  return request.finish("tracepoint", target,
                        bpf_program__attach_tracepoint_opts(request.loaded(), category.c_str(), name.c_str(), &options),
                        reason);
}

Outcome<AttachedLink> attachProbe(AttachRequest& request) {
  const ProbeSection section(request.section());
  return section.isForUserSpace() ? attachUserProbe(request, section) : attachKernelProbe(request, section);
}

Outcome<AttachedLink> attachPerfEvent(AttachRequest& request) {
  if (auto allowed = request.allowOnly({"perfEvent", "cookie"}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  const auto* wanted = request.structure("perfEvent");
  if (wanted == nullptr) {
    return request.missing("perfEvent", "an event to sample");
  }
  const auto event = readPerfEvent(*wanted);
  if (!event) {
    return invalidParameter(request.path("perfEvent"), event.error().message);
  }
  const std::string& target = event->description;
  auto descriptors = openPerfEvent(*event);
  if (!descriptors) {
    return request.refused(target, descriptors.error().code, [&](int code) { return whyNoPerfEvent(*event, code); });
  }
  if (request.onlyChecking()) {
    return request.checked("perf_event", target);
  }
  AttachedLink attached{.kind = "perf_event", .target = target, .descriptors = {}, .kernelId = {}};
  for (UniqueFd& opened : *descriptors) {
    LIBBPF_OPTS(bpf_perf_event_opts, options, .bpf_cookie = request.number("cookie").value_or(0));
    LinkHandle link(bpf_program__attach_perf_event_opts(request.loaded(), opened.get(), &options));
    if (!link) {
      return request.refused(target, errno);
    }
    // Now libbpf's: on kernels without perf links it is the link itself.
    static_cast<void>(opened.release());
    attached.descriptors.push_back(takeDescriptor(std::move(link)));
  }
  if (attached.descriptors.size() == 1) {
    attached.kernelId = kernelLinkId(attached.descriptors.front());
  }
  return attached;
}

} // namespace btfd::loader
