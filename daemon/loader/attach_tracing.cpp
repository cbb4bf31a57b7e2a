#include "attach_tracing.h"

#include "attach_diagnosis.h"
#include "kernel_names.h"
#include "object/sought_type.h"
#include "perf_event.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <limits>
#include <optional>

#include <sys/stat.h>

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
  case BPF_TRACE_ITER:
    return "iter";
  default:
    return "tracing";
  }
}

std::string_view kprobeKind(std::string_view section) {
  const auto slash = section.find('/');
  return slash == std::string_view::npos ? section : section.substr(0, slash);
}

/// Whether `name` can be a tracepoint or its category. Both become part of a path below tracefs, which must not lead
/// elsewhere.
bool isTracefsName(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char character) {
    return std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '_' || character == '-';
  });
}

/// The process that field `pid` names, if it is there. 0, which kernel and libbpf take for all or for the worker
/// itself, is none.
Outcome<std::optional<pid_t>> givenProcess(const AttachRequest& request) {
  const auto pid = request.number("pid");
  if (!pid) {
    return std::nullopt;
  }
  if (*pid == 0 || *pid > static_cast<std::uint64_t>(std::numeric_limits<pid_t>::max())) {
    return invalidParameter(request.path("pid"),
                            "there is no process " + std::to_string(static_cast<std::int64_t>(*pid)));
  }
  return static_cast<pid_t>(*pid);
}

Outcome<AttachedLink> attachIterator(AttachRequest& request) {
  if (auto allowed = request.allowOnly({"pid", "map", "cgroup"}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  const std::string target = sectionTarget(request.section());
  union bpf_iter_link_info info{};
  UniqueFd cgroup;
  bool parameters = false;
  const auto process = givenProcess(request);
  if (!process) {
    return std::unexpected(process.error());
  }
  if (*process) {
    info.task.pid = static_cast<__u32>(**process);
    parameters = true;
  }
  if (const auto map = request.text("map")) {
    const auto found = request.maps().find(*map);
    if (!found) {
      return std::unexpected(found.error());
    }
    info.map.map_fd = static_cast<__u32>(bpf_map__fd(*found));
    parameters = true;
  }
  if (const auto directory = request.text("cgroup")) {
    auto opened = request.openCgroup(*directory);
    if (!opened) {
      return std::unexpected(std::move(opened.error()));
    }
    cgroup = std::move(*opened);
    info.cgroup.cgroup_fd = static_cast<__u32>(cgroup.get());
    info.cgroup.order = BPF_CGROUP_ITER_DESCENDANTS_PRE;
    parameters = true;
  }
  if (request.onlyChecking()) {
    return request.checked("iter", target);
  }
  LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = parameters ? &info : nullptr,
              .link_info_len = parameters ? static_cast<__u32>(sizeof(info)) : 0U);
  return request.finish("iter", target, bpf_program__attach_iter(request.loaded(), &options));
}

bool isReturnProbe(std::string_view kind) {
  return kind == "kretprobe" || kind == "uretprobe" || kind == "uretprobe.s";
}

/// Whether a program of this kind is for binaries of user space rather than for the kernel's functions.
bool isUserProbe(std::string_view kind) {
  return kind.starts_with("uprobe") || kind.starts_with("uretprobe") || kind == "usdt";
}

Outcome<AttachedLink> attachUprobe(AttachRequest& request, std::string_view kind) {
  if (auto allowed = request.allowOnly({"binary", "function", "offset", "cookie", "pid"}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  const std::string binary = request.text("binary").value_or("");
  if (binary.empty()) {
    return request.missing("binary", "the path of a program or library, or the name of one");
  }
  if (!request.has("function") && !request.has("offset")) {
    return request.missing("function", "a function of " + binary + ", or an offset in it");
  }
  // A name without slash is looked for by libbpf. Opening a pipe would wait for ever.
  struct stat status{};
  if (binary.find('/') != std::string::npos && (::stat(binary.c_str(), &status) < 0 || !S_ISREG(status.st_mode))) {
    return invalidParameter(request.path("binary"), "'" + binary + "' is no program or library");
  }
  const auto process = givenProcess(request);
  if (!process) {
    return std::unexpected(process.error());
  }
  const std::string function = request.text("function").value_or("");
  const std::string target = binary + ":" + function + "+" + std::to_string(request.number("offset").value_or(0));
  const auto reason = [&](int code) { return whyNoUprobe(binary, function, code, request.warnings()); };
  if (request.onlyChecking()) {
    return request.checked(kind, target);
  }
  LIBBPF_OPTS(bpf_uprobe_opts, options, .bpf_cookie = request.number("cookie").value_or(0),
              .retprobe = isReturnProbe(kind), .func_name = function.empty() ? nullptr : function.c_str());
  constexpr pid_t kAll = -1;
  return request.finish(kind, target,
                        bpf_program__attach_uprobe_opts(request.loaded(), process->value_or(kAll), binary.c_str(),
                                                        request.number("offset").value_or(0), &options),
                        reason);
}

/// What is said of a probe at `function` that was only looked at.
Outcome<AttachedLink> checkedKprobe(const AttachRequest& request, std::string_view kind, const std::string& target,
                                    const std::string& function, const AttachRequest::Reason& reason) {
  return kernelHasKprobes() && kernelHasFunction(function) ? AttachRequest::checked(kind, target)
                                                           : request.refused(target, ENOENT, reason);
}

Outcome<AttachedLink> attachKprobe(AttachRequest& request, std::string_view kind) {
  if (auto allowed = request.allowOnly({"function", "offset", "cookie"}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  const std::string function = request.text("function").value_or("");
  if (function.empty()) {
    return request.missing("function", "a function of the kernel");
  }
  const auto reason = [&](int code) { return whyNoKernelFunction(function, code); };
  if (request.onlyChecking()) {
    return checkedKprobe(request, kind, function, function, reason);
  }
  LIBBPF_OPTS(bpf_kprobe_opts, options, .bpf_cookie = request.number("cookie").value_or(0),
              .offset = request.number("offset").value_or(0), .retprobe = isReturnProbe(kind));
  return request.finish(kind, function, bpf_program__attach_kprobe_opts(request.loaded(), function.c_str(), &options),
                        reason);
}

Outcome<AttachedLink> attachProbeBySection(AttachRequest& request, std::string_view kind) {
  if (auto allowed = request.allowOnly({}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  const std::string target = sectionTarget(request.section());
  const bool ofOneFunction = kind == "kprobe" || kind == "kretprobe"; // others may have patterns, or are in binaries
  const std::string function = target.substr(0, target.find('+'));
  const auto reason = [&](int code) { return ofOneFunction ? whyNoKernelFunction(function, code) : std::string(); };
  if (!request.onlyChecking()) {
    return request.finish(kind, target, bpf_program__attach(request.loaded()), reason);
  }
  return ofOneFunction ? checkedKprobe(request, kind, target, function, reason) : AttachRequest::checked(kind, target);
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
  const std::string target = sectionTarget(request.section());
  if (request.onlyChecking()) {
    return request.checked(kind, target);
  }
  LIBBPF_OPTS(bpf_trace_opts, options, .cookie = request.number("cookie").value_or(0));
  return request.finish(
      kind, target, bpf_program__attach_trace_opts(request.loaded(), request.number("cookie") ? &options : nullptr));
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
  const std::string_view kind = kprobeKind(bpf_program__section_name(&request.program()));
  const bool sectionSaysIt = request.section().contains('/') && !request.has("binary") && !request.has("function");
  if (sectionSaysIt) {
    return attachProbeBySection(request, kind);
  }
  return isUserProbe(kind) ? attachUprobe(request, kind) : attachKprobe(request, kind);
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
