#pragma once

#include "base/unique_fd.h"

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

namespace btfd::test_support {

/// Sends `bytes` with `descriptors` by one sendmsg(2), whose result it gives, bypassing the code under test.
inline ssize_t sendWithDescriptors(BorrowedFd socket, std::span<const std::byte> bytes,
                                   std::span<const BorrowedFd> descriptors) {
  std::vector<int> numbers;
  for (const BorrowedFd descriptor : descriptors) {
    numbers.push_back(descriptor.get());
  }
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()}; // NOLINT: only sent
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  std::vector<char> control(CMSG_SPACE(numbers.size() * sizeof(int)));
  if (!numbers.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(numbers.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), numbers.data(), numbers.size() * sizeof(int));
  }
  return ::sendmsg(socket.get(), &message, MSG_NOSIGNAL);
}

} // namespace btfd::test_support
