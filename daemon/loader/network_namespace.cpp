#include "network_namespace.h"

#include "attach_request.h"

#include <cerrno>

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace btfd::loader {

Result<UniqueFd> openNetworkNamespace(const std::string& path) {
  auto opened = openOn(NSFS_MAGIC, path, 0, "network namespace");
  if (opened && !isNetworkNamespace(*opened)) {
    return fail("'" + path + "' is no network namespace", EINVAL);
  }
  return opened;
}

Result<UniqueFd> ownNetworkNamespace() {
  UniqueFd own(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  return own ? Result<UniqueFd>(std::move(own)) : failErrno("cannot open the daemon's own network namespace", errno);
}

bool isNetworkNamespace(BorrowedFd file) {
  struct statfs status{};
  return ::fstatfs(file.get(), &status) == 0 && status.f_type == NSFS_MAGIC &&
         ::ioctl(file.get(), NS_GET_NSTYPE) == CLONE_NEWNET;
}

std::uint64_t namespaceNumber(BorrowedFd networkNamespace) {
  struct stat status{};
  return ::fstat(networkNamespace.get(), &status) == 0 ? status.st_ino : 0;
}

NetworkNamespaceScope::~NetworkNamespaceScope() {
  if (home_) {
    ::setns(home_.get(), CLONE_NEWNET);
  }
}

Result<void> NetworkNamespaceScope::enter(BorrowedFd networkNamespace) {
  auto home = ownNetworkNamespace();
  if (!home) {
    return std::unexpected(std::move(home.error()));
  }
  if (::setns(networkNamespace.get(), CLONE_NEWNET) < 0) {
    return failErrno("cannot enter the network namespace", errno);
  }
  home_ = std::move(*home);
  return {};
}

} // namespace btfd::loader
