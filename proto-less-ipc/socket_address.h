#pragma once

#include "base/error.h"

#include <cerrno>
#include <cstddef>
#include <string>

#include <sys/socket.h>
#include <sys/un.h>

namespace btfd::varlink {

/// Address of an AF_UNIX socket in the file system.
class SocketAddress {
 public:
  /// An error if `path` is empty or longer than the 107 bytes that the kernel's sockaddr_un has room for.
  static Result<SocketAddress> of(const std::string& path) {
    SocketAddress address;
    if (path.empty() || path.size() >= sizeof address.address_.sun_path) {
      return failErrno("socket path \"" + path + "\"", path.empty() ? EINVAL : ENAMETOOLONG);
    }
    address.address_.sun_family = AF_UNIX;
    path.copy(address.address_.sun_path, path.size());
    address.size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
    return address;
  }

  [[nodiscard]] const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&address_); }

  [[nodiscard]] socklen_t size() const { return size_; }

 private:
  sockaddr_un address_{};
  socklen_t size_ = 0;
};

} // namespace btfd::varlink
