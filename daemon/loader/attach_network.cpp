#include "attach_network.h"

#include "attach_diagnosis.h"

#include <bpf/bpf.h>

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#ifndef SO_ATTACH_BPF
#include <asm/socket.h>
#endif

namespace btfd::loader {

namespace {

Result<UniqueFd> openNetworkNamespace(const std::string& path) {
  return openOn(NSFS_MAGIC, path, 0, "network namespace");
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
    if (!home) {
      return failErrno("cannot open the daemon's own network namespace", errno);
    }
    const auto other = openNetworkNamespace(path);
    if (!other) {
      return std::unexpected(other.error());
    }
    if (::setns(other->get(), CLONE_NEWNET) < 0) {
      return failErrno("cannot enter network namespace " + path, errno);
    }
    home_ = std::move(home);
    return {};
  }

 private:
  UniqueFd home_;
};

// What the kernel asks of a descriptor that it attaches to; its errors are EBADF, EINVAL and ENOTSOCK.

bool isCgroup(BorrowedFd file) {
  struct statfs fileSystem{};
  struct stat status{};
  return ::fstatfs(file.get(), &fileSystem) == 0 && fileSystem.f_type == CGROUP2_SUPER_MAGIC &&
         ::fstat(file.get(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool isNetworkNamespace(BorrowedFd file) {
  struct statfs status{};
  return ::fstatfs(file.get(), &status) == 0 && status.f_type == NSFS_MAGIC &&
         ::ioctl(file.get(), NS_GET_NSTYPE) == CLONE_NEWNET;
}

bool isSocket(BorrowedFd file) {
  struct stat status{};
  return ::fstat(file.get(), &status) == 0 && S_ISSOCK(status.st_mode);
}

/// The interface that the request names, looked up in the namespace that it names; the scope stays in there.
Outcome<unsigned> findInterface(AttachRequest& request, NetworkNamespaceScope& scope) {
  const auto interface = request.text("interface");
  if (!interface) {
    return request.missing("interface", "an interface to attach to");
  }
  if (const auto path = request.text("networkNamespace")) {
    if (auto entered = scope.enter(*path); !entered) {
      return invalidParameter(request.path("networkNamespace"), entered.error().message);
    }
  }
  const unsigned index = ::if_nametoindex(interface->c_str());
  if (index == 0) {
    return invalidParameter(request.path("interface"), "there is no network interface '" + *interface + "'");
  }
  return index;
}

} // namespace

Outcome<AttachedLink> attachXdp(AttachRequest& request) {
  if (auto allowed = request.allowOnly({"interface", "xdpMode", "networkNamespace"}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  LIBBPF_OPTS(bpf_link_create_opts, options);
  const std::string mode = request.text("xdpMode").value_or("");
  if (mode == "native") {
    options.flags = XDP_FLAGS_DRV_MODE;
  } else if (mode == "generic") {
    options.flags = XDP_FLAGS_SKB_MODE;
  } else if (mode == "offload") {
    options.flags = XDP_FLAGS_HW_MODE;
  } else if (!mode.empty()) {
    return invalidParameter(request.path("xdpMode"),
                            "there is no XDP mode '" + mode + "'; it is native, generic or offload");
  }
  NetworkNamespaceScope scope;
  const auto interface = findInterface(request, scope);
  if (!interface) {
    return std::unexpected(interface.error());
  }
  const std::string target = "interface " + *request.text("interface") + (mode.empty() ? "" : " (" + mode + ")");
  if (request.onlyChecking()) {
    return request.checked("xdp", target);
  }
  return request.createLink("xdp", target, static_cast<int>(*interface), BPF_XDP, options,
                            [&](int code) { return whyNoXdp(mode, code); });
}

Outcome<AttachedLink> attachTcx(AttachRequest& request) {
  if (auto allowed = request.allowOnly({"interface", "direction", "networkNamespace"}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  enum bpf_attach_type type = bpf_program__expected_attach_type(&request.program());
  const auto direction = request.text("direction");
  if (direction && *direction != "ingress" && *direction != "egress") {
    return invalidParameter(request.path("direction"), "'" + *direction + "' is neither ingress nor egress");
  }
  if (direction) {
    type = *direction == "ingress" ? BPF_TCX_INGRESS : BPF_TCX_EGRESS;
  } else if (type != BPF_TCX_INGRESS && type != BPF_TCX_EGRESS) {
    return request.missing("direction", "ingress or egress, as its section " + request.section() + " says neither");
  }
  NetworkNamespaceScope scope;
  const auto interface = findInterface(request, scope);
  if (!interface) {
    return std::unexpected(interface.error());
  }
  const std::string target =
      "interface " + *request.text("interface") + (type == BPF_TCX_INGRESS ? " ingress" : " egress");
  if (request.onlyChecking()) {
    return request.checked("tcx", target);
  }
  LIBBPF_OPTS(bpf_link_create_opts, options);
  return request.createLink("tcx", target, static_cast<int>(*interface), type, options);
}

Outcome<AttachedLink> attachCgroup(AttachRequest& request) {
  if (auto allowed = request.allowOnly({"cgroup", "targetFileDescriptor"}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  const auto directory = request.text("cgroup");
  UniqueFd opened;
  BorrowedFd cgroup(-1);
  if (directory) {
    auto result = request.openCgroup(*directory);
    if (!result) {
      return std::unexpected(std::move(result.error()));
    }
    opened = std::move(*result);
    cgroup = opened;
  } else if (!request.has("targetFileDescriptor")) {
    return request.missing("cgroup", "a cgroup, as path or descriptor");
  } else {
    const auto given = request.givenDescriptor("a cgroup, as path or descriptor");
    if (!given) {
      return std::unexpected(given.error());
    }
    cgroup = *given;
  }
  const std::string target = "cgroup " + directory.value_or("given as descriptor");
  if (request.onlyChecking()) {
    return isCgroup(cgroup) ? request.checked("cgroup", target) : request.refused(target, EBADF);
  }
  return request.finish("cgroup", target, bpf_program__attach_cgroup(request.loaded(), cgroup.get()));
}

Outcome<AttachedLink> attachNetworkNamespace(AttachRequest& request) {
  if (auto allowed = request.allowOnly({"networkNamespace", "targetFileDescriptor"}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  const bool byDescriptor = request.has("targetFileDescriptor");
  const std::string path = request.text("networkNamespace").value_or("/proc/self/ns/net");
  UniqueFd opened;
  BorrowedFd chosen(-1);
  if (byDescriptor) {
    const auto given = request.givenDescriptor("a network namespace");
    if (!given) {
      return std::unexpected(given.error());
    }
    chosen = *given;
  } else {
    auto result = openNetworkNamespace(path);
    if (!result) {
      return invalidParameter(request.path("networkNamespace"), result.error().message);
    }
    opened = std::move(*result);
    chosen = opened;
  }
  const std::string target = "network namespace " + (byDescriptor                      ? "given as descriptor"
                                                     : request.has("networkNamespace") ? path
                                                                                       : "of the daemon");
  if (request.onlyChecking()) {
    return isNetworkNamespace(chosen) ? request.checked("netns", target) : request.refused(target, EINVAL);
  }
  return request.finish("netns", target, bpf_program__attach_netns(request.loaded(), chosen.get()));
}

Outcome<AttachedLink> attachSockmap(AttachRequest& request) {
  if (auto allowed = request.allowOnly({"map"}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  const auto name = request.text("map");
  if (!name) {
    return request.missing("map", "the name of one of the object's sockmaps");
  }
  const auto map = request.maps().find(*name);
  if (!map) {
    return std::unexpected(map.error());
  }
  const auto type = bpf_map__type(*map);
  if (type != BPF_MAP_TYPE_SOCKMAP && type != BPF_MAP_TYPE_SOCKHASH) {
    return invalidParameter(request.path("map"), "map '" + *name + "' is no sockmap or sockhash");
  }
  if (request.onlyChecking()) {
    return request.checked("sockmap", "map " + *name);
  }
  return request.finish("sockmap", "map " + *name, bpf_program__attach_sockmap(request.loaded(), bpf_map__fd(*map)));
}

Outcome<AttachedLink> attachSocketFilter(AttachRequest& request) {
  if (auto allowed = request.allowOnly({"targetFileDescriptor"}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  const auto socket = request.givenDescriptor("a socket");
  if (!socket) {
    return std::unexpected(socket.error());
  }
  constexpr std::string_view kKind = "socket_filter";
  const std::string target = "socket given as descriptor";
  if (request.onlyChecking()) {
    return isSocket(*socket) ? request.checked(kKind, target) : request.refused(target, ENOTSOCK);
  }
  const int program = bpf_program__fd(request.loaded());
  if (::setsockopt(socket->get(), SOL_SOCKET, SO_ATTACH_BPF, &program, sizeof(program)) < 0) {
    return request.refused(target, errno);
  }
  AttachedLink attached{.kind = std::string(kKind),
                        .target = target,
                        .descriptors = {},
                        .kernelId = {},
                        .detachBy = DetachBy::socketOption};
  attached.descriptors.emplace_back(::fcntl(socket->get(), F_DUPFD_CLOEXEC, 3));
  return attached;
}

} // namespace btfd::loader
