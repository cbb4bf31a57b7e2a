#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <cstdint>
#include <string>

namespace btfd::loader {

/// The network namespace that `path` names. One error for all that is none, see openOn.
Result<UniqueFd> openNetworkNamespace(const std::string& path);

/// The network namespace of this thread.
Result<UniqueFd> ownNetworkNamespace();

[[nodiscard]] bool isNetworkNamespace(BorrowedFd file);

/// Tells network namespaces apart: the inode's number; 0 for a descriptor that is no file.
std::uint64_t namespaceNumber(BorrowedFd networkNamespace);

/// This thread in another network namespace, until the end of the scope.
class NetworkNamespaceScope {
 public:
  NetworkNamespaceScope() = default;
  NetworkNamespaceScope(const NetworkNamespaceScope&) = delete;
  NetworkNamespaceScope& operator=(const NetworkNamespaceScope&) = delete;
  NetworkNamespaceScope(NetworkNamespaceScope&&) = delete;
  NetworkNamespaceScope& operator=(NetworkNamespaceScope&&) = delete;
  ~NetworkNamespaceScope();

  /// To be called once.
  Result<void> enter(BorrowedFd networkNamespace);

 private:
  UniqueFd home_;
};

} // namespace btfd::loader
