// What a worker that a hostile object has taken over may send: messages and errors, but no end of the front.
#include "loader/channel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace btfd;

namespace {

/// Sends a packet with `descriptors` descriptors, all of them memfds that hold `data`.
bool sendPacket(BorrowedFd channel, const std::uint8_t* data, std::size_t size, BorrowedFd memfd,
                std::size_t descriptors) {
  iovec part{const_cast<std::uint8_t*>(data), size}; // NOLINT: only sent
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 3)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptors > 0) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors);
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * descriptors);
    for (std::size_t i = 0; i < descriptors; ++i) {
      const int fd = memfd.get();
      std::memcpy(CMSG_DATA(rights) + i * sizeof(int), &fd, sizeof(int));
    }
  }
  return ::sendmsg(channel.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

std::string textOf(const nlohmann::json& body) {
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace

/// Packets: a byte with the number of descriptors (two bits), two with the size, and the packet, its header included.
/// What is left at the end is in the memfds.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto pair = loader::makeChannel();
  const UniqueFd memfd(::memfd_create("fuzz", MFD_CLOEXEC));
  if (!pair || !memfd || ::fcntl(pair->front.get(), F_SETFL, O_NONBLOCK) != 0) {
    std::abort();
  }
  if (size > 0 && ::write(memfd.get(), data + size / 2, size - size / 2) < 0) {
    std::abort();
  }
  loader::ChannelReader reader;
  for (std::size_t at = 0; at + 3 <= size;) {
    const std::size_t descriptors = data[at] & 3U;
    const std::size_t wanted = static_cast<std::size_t>(data[at + 1]) | static_cast<std::size_t>(data[at + 2]) << 8U;
    at += 3;
    const std::size_t length = std::min(wanted, size - at);
    if (!sendPacket(pair->worker, data + at, length, memfd, descriptors)) {
      return 0;
    }
    at += length;
    auto message = reader.receive(pair->front);
    if (!message) {
      return 0; // the front gives up on this worker
    }
    if (*message) {
      // What was accepted can be sent on, and comes back the same.
      std::vector<BorrowedFd> received((*message)->descriptors.begin(), (*message)->descriptors.end());
      if (!loader::sendMessage(pair->worker, (*message)->body, received)) {
        return 0; // the socket is full
      }
      auto again = reader.receive(pair->front);
      while (again && !*again) {
        again = reader.receive(pair->front); // it has more descriptors than fit one packet
      }
      if (!again || textOf((**again).body) != textOf((**message).body) ||
          (**again).descriptors.size() != (**message).descriptors.size()) {
        std::abort();
      }
    }
  }
  return 0;
}
