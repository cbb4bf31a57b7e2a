#include "attach.h"

#include "diagnosis.h"
#include "perf_event.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <memory>

#include <fcntl.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>

#ifndef SO_ATTACH_BPF
#include <asm/socket.h>
#endif

namespace btfd::loader {

namespace {

struct LinkDeleter {
  void operator()(struct bpf_link* link) const { bpf_link__destroy(link); }
};

using LinkHandle = std::unique_ptr<struct bpf_link, LinkDeleter>;

/// Takes the descriptor out of libbpf's link. The link must not detach: for perf events libbpf would disable the event,
/// whose own descriptor it keeps beside the link's; the worker closes all that is left once the job is done.
UniqueFd takeDescriptor(LinkHandle link) {
  UniqueFd descriptor(bpf_link__fd(link.get()));
  bpf_link__disconnect(link.get());
  return descriptor;
}

std::optional<std::uint32_t> kernelLinkId(BorrowedFd link) {
  struct bpf_link_info info{};
  __u32 length = sizeof(info);
  if (bpf_link_get_info_by_fd(link.get(), &info, &length) < 0) {
    return std::nullopt; // a perf event of a kernel before 5.15, which has no link for it
  }
  return info.id;
}

/// This thread in another network namespace, until the end of the scope.
class NetworkNamespaceScope {
 public:
  NetworkNamespaceScope() = default;
  NetworkNamespaceScope(const NetworkNamespaceScope&) = delete;
  NetworkNamespaceScope& operator=(const NetworkNamespaceScope&) = delete;
  NetworkNamespaceScope(NetworkNamespaceScope&&) = delete;
  NetworkNamespaceScope& operator=(NetworkNamespaceScope&&) = delete;

  ~NetworkNamespaceScope() {
    if (home_) {
      ::setns(home_.get(), CLONE_NEWNET);
    }
  }

  Result<void> enter(const std::string& path) {
    UniqueFd home(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    const UniqueFd other(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!home || !other) {
      return failErrno("cannot open network namespace " + path, errno);
    }
    if (::setns(other.get(), CLONE_NEWNET) < 0) {
      return failErrno("cannot enter network namespace " + path, errno);
    }
    home_ = std::move(home);
    return {};
  }

 private:
  UniqueFd home_;
};

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

/// What a section name says after its first slash, or all of it.
std::string sectionTarget(std::string_view section) {
  const auto slash = section.find('/');
  return std::string(slash == std::string_view::npos ? section : section.substr(slash + 1));
}

/// Whether `name` can be a tracepoint or its category. Both become part of a path below tracefs, which must not lead
/// elsewhere.
bool isTracefsName(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char character) {
    return std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '_' || character == '-';
  });
}

/// One attachment in the making.
class Attachment {
 public:
  Attachment(const MapsByName& maps, const struct bpf_program& program, const nlohmann::json& target,
             const std::string& path, RequestDescriptors& descriptors)
      : maps_(maps), program_(program), target_(target), path_(path), descriptors_(descriptors) {}

  Outcome<AttachedLink> attach(struct bpf_program& program, const LibbpfLog& log) {
    loaded_ = &program;
    log_ = &log;
    return dispatch();
  }

  /// All of `attach` but the attaching.
  Outcome<void> check() {
    auto checked = dispatch();
    return checked ? Outcome<void>{} : std::unexpected(std::move(checked.error()));
  }

 private:
  Outcome<AttachedLink> dispatch() {
    switch (bpf_program__type(&program_)) {
    case BPF_PROG_TYPE_TRACING:
      return tracing();
    case BPF_PROG_TYPE_LSM:
      return bpf_program__expected_attach_type(&program_) == BPF_LSM_CGROUP ? cgroup() : bySection("lsm", {});
    case BPF_PROG_TYPE_EXT:
      return bySection("freplace", {});
    case BPF_PROG_TYPE_RAW_TRACEPOINT:
    case BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE:
      return rawTracepoint();
    case BPF_PROG_TYPE_TRACEPOINT:
      return tracepoint();
    case BPF_PROG_TYPE_KPROBE:
      return probe();
    case BPF_PROG_TYPE_PERF_EVENT:
      return perfEvent();
    case BPF_PROG_TYPE_XDP:
      return xdp();
    case BPF_PROG_TYPE_SCHED_CLS:
      return tcx();
    case BPF_PROG_TYPE_CGROUP_SKB:
    case BPF_PROG_TYPE_CGROUP_SOCK:
    case BPF_PROG_TYPE_CGROUP_SOCK_ADDR:
    case BPF_PROG_TYPE_CGROUP_SOCKOPT:
    case BPF_PROG_TYPE_CGROUP_SYSCTL:
    case BPF_PROG_TYPE_CGROUP_DEVICE:
    case BPF_PROG_TYPE_SOCK_OPS:
      return cgroup();
    case BPF_PROG_TYPE_SK_LOOKUP:
    case BPF_PROG_TYPE_FLOW_DISSECTOR:
      return networkNamespace();
    case BPF_PROG_TYPE_SK_MSG:
    case BPF_PROG_TYPE_SK_SKB:
      return sockmap();
    case BPF_PROG_TYPE_SOCKET_FILTER:
      return socketFilter();
    default:
      return bySection(libbpf_bpf_prog_type_str(bpf_program__type(&program_)), {});
    }
  }

  // ---- The request's fields -------------------------------------------------------------------------------------

  /// Refuses fields that this kind of program makes no use of: what was meant by them would silently not happen.
  Outcome<void> allowOnly(std::initializer_list<std::string_view> fields) const {
    for (const auto& [field, value] : target_.items()) {
      if (!value.is_null() && std::ranges::find(fields, field) == fields.end()) {
        std::string message = "program '" + name() + "' of type " + typeName() + " has no use for it";
        message += fields.size() == 0 ? "; its section name says what it attaches to" : "; it takes " + join(fields);
        return invalidParameter(path_ + "." + field, std::move(message));
      }
    }
    return {};
  }

  static std::string join(std::initializer_list<std::string_view> fields) {
    std::string joined;
    for (const auto field : fields) {
      joined += (joined.empty() ? "" : ", ") + std::string(field);
    }
    return joined;
  }

  std::optional<std::string> text(const char* field) const {
    const auto found = target_.find(field);
    return found == target_.end() || !found->is_string() ? std::nullopt : std::optional(found->get<std::string>());
  }

  std::optional<std::uint64_t> number(const char* field) const {
    const auto found = target_.find(field);
    if (found == target_.end() || !found->is_number_integer()) {
      return std::nullopt;
    }
    return found->is_number_unsigned() ? found->get<std::uint64_t>()
                                       : static_cast<std::uint64_t>(found->get<std::int64_t>());
  }

  std::unexpected<Failure> missing(const char* field, const std::string& what) const {
    return invalidParameter(path_ + "." + field, "program '" + name() + "' of type " + typeName() + " needs " + what);
  }

  std::string name() const { return bpf_program__name(&program_); }

  std::string section() const { return bpf_program__section_name(&program_); }

  std::string typeName() const { return libbpf_bpf_prog_type_str(bpf_program__type(&program_)); }

  bool onlyChecking() const { return loaded_ == nullptr; }

  // ---- Answers ----------------------------------------------------------------------------------------------------

  std::unexpected<Failure> refused(const std::string& target, int code) const {
    std::string message = "cannot attach program '" + name() + "' (" + typeName() + ") to " + target + ": " +
                          errnoName(code) + " (" + std::strerror(code) + ")";
    if (const std::string more = explain(code, bpf_program__type(&program_)); !more.empty()) {
      message += ": " + more;
    }
    nlohmann::json parameters;
    parameters["message"] = std::move(message);
    parameters["program"] = name();
    parameters["errno"] = code;
    parameters["errnoName"] = errnoName(code);
    if (log_ != nullptr && !log_->warnings().empty()) {
      parameters["libbpfLog"] = log_->warnings();
    }
    return std::unexpected(Failure{"io.btfd.AttachFailed", std::move(parameters)});
  }

  /// `link` is what a libbpf call returned: null with errno on failure.
  Outcome<AttachedLink> finish(std::string_view kind, const std::string& target, struct bpf_link* link) const {
    if (link == nullptr) {
      return refused(target, errno);
    }
    return finish(kind, target, takeDescriptor(LinkHandle(link)));
  }

  static Outcome<AttachedLink> finish(std::string_view kind, const std::string& target, UniqueFd link) {
    AttachedLink attached{
        .kind = std::string(kind), .target = target, .descriptors = {}, .kernelId = kernelLinkId(link)};
    attached.descriptors.push_back(std::move(link));
    return attached;
  }

  Outcome<AttachedLink> checked(std::string_view kind, const std::string& target) const {
    return AttachedLink{.kind = std::string(kind), .target = target, .descriptors = {}, .kernelId = {}};
  }

  /// Attaches by a plain BPF_LINK_CREATE.
  Outcome<AttachedLink> createLink(std::string_view kind, const std::string& target, int targetId,
                                   enum bpf_attach_type type, const struct bpf_link_create_opts& options) const {
    UniqueFd link(bpf_link_create(bpf_program__fd(loaded_), targetId, type, &options));
    return link ? finish(kind, target, std::move(link)) : refused(target, errno);
  }

  // ---- Kinds of programs --------------------------------------------------------------------------------------------

  /// What the section name says, done by libbpf.
  Outcome<AttachedLink> bySection(std::string_view kind, std::initializer_list<std::string_view> fields) {
    if (auto allowed = allowOnly(fields); !allowed) {
      return std::unexpected(std::move(allowed.error()));
    }
    if (onlyChecking()) {
      return checked(kind, sectionTarget(section()));
    }
    return finish(kind, sectionTarget(section()), bpf_program__attach(loaded_));
  }

  Outcome<AttachedLink> tracing() {
    const auto type = bpf_program__expected_attach_type(&program_);
    const std::string_view kind = tracingKind(type);
    if (type == BPF_TRACE_ITER) {
      return iterator();
    }
    if (auto allowed = allowOnly({"cookie"}); !allowed) {
      return std::unexpected(std::move(allowed.error()));
    }
    const std::string target = sectionTarget(section());
    if (onlyChecking()) {
      return checked(kind, target);
    }
    LIBBPF_OPTS(bpf_trace_opts, options, .cookie = number("cookie").value_or(0));
    return finish(kind, target, bpf_program__attach_trace_opts(loaded_, number("cookie") ? &options : nullptr));
  }

  Outcome<AttachedLink> iterator() {
    if (auto allowed = allowOnly({"pid", "map", "cgroup"}); !allowed) {
      return std::unexpected(std::move(allowed.error()));
    }
    const std::string target = sectionTarget(section());
    union bpf_iter_link_info info{};
    UniqueFd cgroup;
    bool parameters = false;
    if (const auto pid = number("pid")) {
      info.task.pid = static_cast<__u32>(*pid);
      parameters = true;
    }
    if (const auto map = text("map")) {
      const auto found = maps_.find(*map);
      if (!found) {
        return std::unexpected(found.error());
      }
      info.map.map_fd = static_cast<__u32>(bpf_map__fd(*found));
      parameters = true;
    }
    if (const auto directory = text("cgroup")) {
      auto opened = openCgroup(*directory);
      if (!opened) {
        return std::unexpected(std::move(opened.error()));
      }
      cgroup = std::move(*opened);
      info.cgroup.cgroup_fd = static_cast<__u32>(cgroup.get());
      info.cgroup.order = BPF_CGROUP_ITER_DESCENDANTS_PRE;
      parameters = true;
    }
    if (onlyChecking()) {
      return checked("iter", target);
    }
    LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = parameters ? &info : nullptr,
                .link_info_len = parameters ? static_cast<__u32>(sizeof(info)) : 0U);
    return finish("iter", target, bpf_program__attach_iter(loaded_, &options));
  }

  Outcome<AttachedLink> rawTracepoint() {
    if (auto allowed = allowOnly({"tracepoint", "cookie"}); !allowed) {
      return std::unexpected(std::move(allowed.error()));
    }
    const std::string target = text("tracepoint").value_or(sectionTarget(section()));
    if (onlyChecking()) {
      return checked("raw_tracepoint", target);
    }
    LIBBPF_OPTS(bpf_raw_tracepoint_opts, options, .cookie = number("cookie").value_or(0));
    return finish("raw_tracepoint", target, bpf_program__attach_raw_tracepoint_opts(loaded_, target.c_str(), &options));
  }

  Outcome<AttachedLink> tracepoint() {
    if (auto allowed = allowOnly({"tracepoint", "cookie"}); !allowed) {
      return std::unexpected(std::move(allowed.error()));
    }
    const std::string target = text("tracepoint").value_or(sectionTarget(section()));
    const auto slash = target.find('/');
    if (slash == std::string::npos || !isTracefsName(target.substr(0, slash)) ||
        !isTracefsName(target.substr(slash + 1))) {
      return missing("tracepoint", "a tracepoint as category/name; '" + target + "' is none");
    }
    if (onlyChecking()) {
      return checked("tracepoint", target);
    }
    LIBBPF_OPTS(bpf_tracepoint_opts, options, .bpf_cookie = number("cookie").value_or(0));
    return finish("tracepoint", target,
                  bpf_program__attach_tracepoint_opts(loaded_, target.substr(0, slash).c_str(),
                                                      target.substr(slash + 1).c_str(), &options));
  }

  Outcome<AttachedLink> probe() {
    const std::string_view kind = kprobeKind(bpf_program__section_name(&program_));
    const bool returns = kind == "kretprobe" || kind == "uretprobe" || kind == "uretprobe.s";
    if (const auto binary = text("binary")) {
      if (auto allowed = allowOnly({"binary", "function", "offset", "cookie", "pid"}); !allowed) {
        return std::unexpected(std::move(allowed.error()));
      }
      const std::string function = text("function").value_or("");
      const std::string target = *binary + ":" + function + "+" + std::to_string(number("offset").value_or(0));
      if (onlyChecking()) {
        return checked(kind, target);
      }
      LIBBPF_OPTS(bpf_uprobe_opts, options, .bpf_cookie = number("cookie").value_or(0), .retprobe = returns,
                  .func_name = function.empty() ? nullptr : function.c_str());
      const auto pid = static_cast<pid_t>(number("pid").value_or(static_cast<std::uint64_t>(-1)));
      return finish(
          kind, target,
          bpf_program__attach_uprobe_opts(loaded_, pid, binary->c_str(), number("offset").value_or(0), &options));
    }
    if (const auto function = text("function")) {
      if (auto allowed = allowOnly({"function", "offset", "cookie"}); !allowed) {
        return std::unexpected(std::move(allowed.error()));
      }
      if (onlyChecking()) {
        return checked(kind, *function);
      }
      LIBBPF_OPTS(bpf_kprobe_opts, options, .bpf_cookie = number("cookie").value_or(0),
                  .offset = number("offset").value_or(0), .retprobe = returns);
      return finish(kind, *function, bpf_program__attach_kprobe_opts(loaded_, function->c_str(), &options));
    }
    return bySection(kind, {});
  }

  Outcome<AttachedLink> perfEvent() {
    if (auto allowed = allowOnly({"perfEvent", "cookie"}); !allowed) {
      return std::unexpected(std::move(allowed.error()));
    }
    const auto request = target_.find("perfEvent");
    if (request == target_.end() || !request->is_object()) {
      return missing("perfEvent", "an event to sample");
    }
    auto events = openPerfEvents(*request);
    if (!events && events.error().code == EINVAL) {
      return invalidParameter(path_ + ".perfEvent", events.error().message);
    }
    if (!events) {
      return refused(events.error().message, events.error().code);
    }
    if (onlyChecking()) {
      return checked("perf_event", events->description);
    }
    AttachedLink attached{.kind = "perf_event", .target = events->description, .descriptors = {}, .kernelId = {}};
    for (UniqueFd& event : events->descriptors) {
      LIBBPF_OPTS(bpf_perf_event_opts, options, .bpf_cookie = number("cookie").value_or(0));
      LinkHandle link(bpf_program__attach_perf_event_opts(loaded_, event.get(), &options));
      if (!link) {
        return refused(events->description, errno);
      }
      // Now libbpf's: on kernels without perf links it is the link itself.
      static_cast<void>(event.release());
      attached.descriptors.push_back(takeDescriptor(std::move(link)));
    }
    if (attached.descriptors.size() == 1) {
      attached.kernelId = kernelLinkId(attached.descriptors.front());
    }
    return attached;
  }

  /// The interface that the request names, looked up in the namespace that it names; the scope stays in there.
  Outcome<unsigned> findInterface(NetworkNamespaceScope& scope) const {
    const auto interface = text("interface");
    if (!interface) {
      return missing("interface", "an interface to attach to");
    }
    if (const auto path = text("networkNamespace")) {
      if (auto entered = scope.enter(*path); !entered) {
        return invalidParameter(path_ + ".networkNamespace", entered.error().message);
      }
    }
    const unsigned index = ::if_nametoindex(interface->c_str());
    if (index == 0) {
      return invalidParameter(path_ + ".interface", "there is no network interface '" + *interface + "'");
    }
    return index;
  }

  Outcome<AttachedLink> xdp() {
    if (auto allowed = allowOnly({"interface", "xdpMode", "networkNamespace"}); !allowed) {
      return std::unexpected(std::move(allowed.error()));
    }
    LIBBPF_OPTS(bpf_link_create_opts, options);
    const std::string mode = text("xdpMode").value_or("");
    if (mode == "native") {
      options.flags = XDP_FLAGS_DRV_MODE;
    } else if (mode == "generic") {
      options.flags = XDP_FLAGS_SKB_MODE;
    } else if (mode == "offload") {
      options.flags = XDP_FLAGS_HW_MODE;
    } else if (!mode.empty()) {
      return invalidParameter(path_ + ".xdpMode",
                              "there is no XDP mode '" + mode + "'; it is native, generic or offload");
    }
    NetworkNamespaceScope scope;
    const auto interface = findInterface(scope);
    if (!interface) {
      return std::unexpected(interface.error());
    }
    const std::string target = "interface " + *text("interface") + (mode.empty() ? "" : " (" + mode + ")");
    if (onlyChecking()) {
      return checked("xdp", target);
    }
    return createLink("xdp", target, static_cast<int>(*interface), BPF_XDP, options);
  }

  Outcome<AttachedLink> tcx() {
    if (auto allowed = allowOnly({"interface", "direction", "networkNamespace"}); !allowed) {
      return std::unexpected(std::move(allowed.error()));
    }
    enum bpf_attach_type type = bpf_program__expected_attach_type(&program_);
    const auto direction = text("direction");
    if (direction && *direction != "ingress" && *direction != "egress") {
      return invalidParameter(path_ + ".direction", "'" + *direction + "' is neither ingress nor egress");
    }
    if (direction) {
      type = *direction == "ingress" ? BPF_TCX_INGRESS : BPF_TCX_EGRESS;
    } else if (type != BPF_TCX_INGRESS && type != BPF_TCX_EGRESS) {
      return missing("direction", "ingress or egress, as its section " + section() + " says neither");
    }
    NetworkNamespaceScope scope;
    const auto interface = findInterface(scope);
    if (!interface) {
      return std::unexpected(interface.error());
    }
    const std::string target = "interface " + *text("interface") + (type == BPF_TCX_INGRESS ? " ingress" : " egress");
    if (onlyChecking()) {
      return checked("tcx", target);
    }
    LIBBPF_OPTS(bpf_link_create_opts, options);
    return createLink("tcx", target, static_cast<int>(*interface), type, options);
  }

  Outcome<UniqueFd> openCgroup(const std::string& directory) const {
    UniqueFd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened) {
      return invalidParameter(path_ + ".cgroup", "cannot open cgroup " + directory + ": " + std::strerror(errno));
    }
    return opened;
  }

  Outcome<AttachedLink> cgroup() {
    if (auto allowed = allowOnly({"cgroup", "targetFileDescriptor"}); !allowed) {
      return std::unexpected(std::move(allowed.error()));
    }
    const auto directory = text("cgroup");
    UniqueFd opened;
    BorrowedFd cgroup(-1);
    if (directory) {
      auto result = openCgroup(*directory);
      if (!result) {
        return std::unexpected(std::move(result.error()));
      }
      opened = std::move(*result);
      cgroup = opened;
    } else {
      const auto given = givenDescriptor("a cgroup, as path or descriptor");
      if (!given) {
        return std::unexpected(given.error());
      }
      cgroup = *given;
    }
    const std::string target = "cgroup " + directory.value_or("given as descriptor");
    if (onlyChecking()) {
      return checked("cgroup", target);
    }
    return finish("cgroup", target, bpf_program__attach_cgroup(loaded_, cgroup.get()));
  }

  Outcome<BorrowedFd> givenDescriptor(const std::string& what) {
    const auto index = target_.find("targetFileDescriptor");
    if (index == target_.end() || index->is_null()) {
      return missing("targetFileDescriptor", what);
    }
    return descriptors_.take(*index, path_ + ".targetFileDescriptor");
  }

  Outcome<AttachedLink> networkNamespace() {
    if (auto allowed = allowOnly({"networkNamespace", "targetFileDescriptor"}); !allowed) {
      return std::unexpected(std::move(allowed.error()));
    }
    const bool byDescriptor = target_.contains("targetFileDescriptor") && !target_["targetFileDescriptor"].is_null();
    const std::string path = text("networkNamespace").value_or("/proc/self/ns/net");
    UniqueFd opened;
    BorrowedFd chosen(-1);
    if (byDescriptor) {
      const auto given = givenDescriptor("a network namespace");
      if (!given) {
        return std::unexpected(given.error());
      }
      chosen = *given;
    } else {
      opened.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
      if (!opened) {
        return invalidParameter(path_ + ".networkNamespace",
                                "cannot open network namespace " + path + ": " + std::strerror(errno));
      }
      chosen = opened;
    }
    const std::string target = "network namespace " + (byDescriptor                           ? "given as descriptor"
                                                       : target_.contains("networkNamespace") ? path
                                                                                              : "of the daemon");
    if (onlyChecking()) {
      return checked("netns", target);
    }
    return finish("netns", target, bpf_program__attach_netns(loaded_, chosen.get()));
  }

  Outcome<AttachedLink> sockmap() {
    if (auto allowed = allowOnly({"map"}); !allowed) {
      return std::unexpected(std::move(allowed.error()));
    }
    const auto name = text("map");
    if (!name) {
      return missing("map", "the name of one of the object's sockmaps");
    }
    const auto map = maps_.find(*name);
    if (!map) {
      return std::unexpected(map.error());
    }
    if (onlyChecking()) {
      return checked("sockmap", "map " + *name);
    }
    return finish("sockmap", "map " + *name, bpf_program__attach_sockmap(loaded_, bpf_map__fd(*map)));
  }

  Outcome<AttachedLink> socketFilter() {
    if (auto allowed = allowOnly({"targetFileDescriptor"}); !allowed) {
      return std::unexpected(std::move(allowed.error()));
    }
    const auto socket = givenDescriptor("a socket");
    if (!socket) {
      return std::unexpected(socket.error());
    }
    constexpr std::string_view kKind = "socket_filter";
    const std::string target = "socket given as descriptor";
    if (onlyChecking()) {
      return checked(kKind, target);
    }
    const int program = bpf_program__fd(loaded_);
    if (::setsockopt(socket->get(), SOL_SOCKET, SO_ATTACH_BPF, &program, sizeof(program)) < 0) {
      return refused(target, errno);
    }
    AttachedLink attached{.kind = std::string(kKind),
                          .target = target,
                          .descriptors = {},
                          .kernelId = {},
                          .detachBy = DetachBy::socketOption};
    attached.descriptors.emplace_back(::fcntl(socket->get(), F_DUPFD_CLOEXEC, 3));
    return attached;
  }

  const MapsByName& maps_;
  const struct bpf_program& program_;
  const nlohmann::json& target_;
  const std::string& path_;
  RequestDescriptors& descriptors_;
  struct bpf_program* loaded_ = nullptr;
  const LibbpfLog* log_ = nullptr;
};

} // namespace

void detach(AttachedLink& link) {
  if (link.detachBy == DetachBy::socketOption) {
    for (const UniqueFd& socket : link.descriptors) {
      const int unused = 0;
      ::setsockopt(socket.get(), SOL_SOCKET, SO_DETACH_BPF, &unused, sizeof(unused));
    }
  }
  link.descriptors.clear();
}

Outcome<AttachedLink> attachProgram(const MapsByName& maps, struct bpf_program& program, const nlohmann::json& target,
                                    const std::string& path, RequestDescriptors& descriptors, const LibbpfLog& log) {
  return Attachment(maps, program, target, path, descriptors).attach(program, log);
}

Outcome<void> checkTarget(const MapsByName& maps, const struct bpf_program& program, const nlohmann::json& target,
                          const std::string& path, RequestDescriptors& descriptors) {
  return Attachment(maps, program, target, path, descriptors).check();
}

} // namespace btfd::loader
