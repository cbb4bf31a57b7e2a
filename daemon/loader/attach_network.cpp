#include "attach_network.h"

#include "attach_diagnosis.h"
#include "network_namespace.h"

#include <cerrno>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#ifndef SO_ATTACH_BPF
#include <asm/socket.h>
#endif

namespace btfd::loader {

namespace {

// What the kernel asks of a descriptor that it attaches to; its errors are EBADF, EINVAL and ENOTSOCK.

bool isCgroup(BorrowedFd file) {
  struct statfs fileSystem{};
  struct stat status{};
  return ::fstatfs(file.get(), &fileSystem) == 0 && fileSystem.f_type == CGROUP2_SUPER_MAGIC &&
         ::fstat(file.get(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool isSocket(BorrowedFd file) {
  struct stat status{};
  return ::fstat(file.get(), &status) == 0 && S_ISSOCK(status.st_mode);
}

} // namespace

Outcome<AttachedLink> attachCgroup(AttachRequest& request) {
  if (auto allowed = request.allowOnly({"cgroup", "targetFileDescriptor", "before", "after"}); !allowed) {
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
  const auto anchor = request.anchor();
  if (!anchor) {
    return std::unexpected(anchor.error());
  }
  const std::string target = "cgroup " + directory.value_or("given as descriptor");
  if (request.onlyChecking()) {
    return isCgroup(cgroup) ? request.checked("cgroup", target) : request.refused(target, EBADF);
  }
  LIBBPF_OPTS(bpf_cgroup_opts, options, .flags = anchor->flags, .relative_id = anchor->id);
  const auto reason = [&](int code) {
    return code == EINVAL && anchor->flags != 0
               ? "this kernel may not order the programs of a cgroup, or what is named is no link"
               : whyNoOrder(code);
  };
  return request.finish("cgroup", target, bpf_program__attach_cgroup_opts(request.loaded(), cgroup.get(), &options),
                        reason);
}

Outcome<AttachedLink> attachNetworkNamespace(AttachRequest& request) {
  if (auto allowed = request.allowOnly({"networkNamespace", "networkNamespacePid", "targetFileDescriptor"}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  auto given = request.networkNamespace();
  if (!given) {
    return std::unexpected(std::move(given.error()));
  }
  std::string words = "of the daemon";
  UniqueFd opened;
  BorrowedFd chosen(-1);
  if (*given) {
    words = (*given)->words;
    opened = std::move((*given)->descriptor);
    chosen = opened;
  } else if (request.has("targetFileDescriptor")) {
    words = "given as descriptor";
    const auto descriptor = request.givenDescriptor("a network namespace");
    if (!descriptor) {
      return std::unexpected(descriptor.error());
    }
    chosen = *descriptor;
  } else {
    auto own = ownNetworkNamespace();
    if (!own) {
      return request.refused("network namespace " + words, own.error().code);
    }
    opened = std::move(*own);
    chosen = opened;
  }
  const std::string target = "network namespace " + words;
  if (request.onlyChecking()) {
    return isNetworkNamespace(chosen) ? request.checked("netns", target) : request.refused(target, EINVAL);
  }
  return request.finish("netns", target, bpf_program__attach_netns(request.loaded(), chosen.get()));
}

namespace {

/// As it was done before Linux 6.10, which has no links for it.
Outcome<AttachedLink> attachToMapItself(const AttachRequest& request, const std::string& target, BorrowedFd map) {
  const BorrowedFd program(bpf_program__fd(request.loaded()));
  AttachedLink attached{.kind = "sockmap",
                        .target = target,
                        .descriptors = {},
                        .kernelId = {},
                        .detachBy = DetachBy::programDetach,
                        .attachType = bpf_program__expected_attach_type(request.loaded())};
  attached.descriptors.push_back(map.duplicate());
  attached.descriptors.push_back(program.duplicate());
  if (!attached.descriptors.front() || !attached.descriptors.back()) {
    return request.refused(target, errno);
  }
  if (const int error = bpf_prog_attach(program.get(), map.get(), attached.attachType, 0); error < 0) {
    return request.refused(target, -error);
  }
  return attached;
}

} // namespace

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
  const BorrowedFd descriptor(bpf_map__fd(*map));
  LinkHandle link(bpf_program__attach_sockmap(request.loaded(), descriptor.get()));
  if (!link && errno == EINVAL) {
    return attachToMapItself(request, "map " + *name, descriptor);
  }
  return request.finish("sockmap", "map " + *name, link.release());
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
