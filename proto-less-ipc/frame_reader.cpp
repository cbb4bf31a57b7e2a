#include "varlink/frame_reader.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include <sys/socket.h>

namespace btfd::varlink {

namespace {

/// Enough for most messages, and little enough to copy again for each of many pipelined ones.
constexpr std::size_t kFirstPeek = 4096;

/// For the rest of a message that turned out to be large.
constexpr std::size_t kNextPeek = std::size_t{64} << 10;

/// How much of a message is read in one go: a large message must not keep the thread from other connections.
constexpr std::size_t kTurn = std::size_t{1} << 20;

/// Room for the descriptors of one sendmsg. The kernel never merges those of two in one recvmsg.
using ControlBuffer = std::array<char, CMSG_SPACE(sizeof(int) * kDescriptorLimit)>;

ssize_t receiveRetrying(BorrowedFd socket, msghdr& message, int flags) {
  ssize_t count = -1;
  do {
    count = ::recvmsg(socket.get(), &message, flags);
  } while (count < 0 && errno == EINTR);
  return count;
}

/// Looks at what comes next without taking it, nor its descriptors.
ssize_t peek(BorrowedFd socket, std::span<char> bytes) {
  iovec vector{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  return receiveRetrying(socket, message, MSG_PEEK);
}

} // namespace

Result<FrameReader::Outcome> FrameReader::read(BorrowedFd socket, Frame& frame) {
  std::array<char, kNextPeek> peeked; // NOLINT(cppcoreguidelines-pro-type-member-init): filled by peek
  sawMore_ = false;
  const std::size_t turnEnd = partial_.text.size() + kTurn;
  while (partial_.text.size() < turnEnd) {
    const std::size_t room = partial_.text.empty() ? kFirstPeek : kNextPeek;
    const ssize_t seen = peek(socket, std::span(peeked).first(room));
    if (seen < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return Outcome::incomplete;
      }
      return failErrno("receive a message", errno);
    }
    if (seen == 0) {
      if (!partial_.text.empty()) {
        return fail("the peer closed the connection inside a message");
      }
      return Outcome::closed;
    }

    const auto available = static_cast<std::size_t>(seen);
    const void* end = std::memchr(peeked.data(), '\0', available);
    const std::size_t wanted =
        end == nullptr ? available : static_cast<std::size_t>(static_cast<const char*>(end) - peeked.data()) + 1;
    if (partial_.text.size() + wanted > limit_ + (end != nullptr ? 1 : 0)) {
      return fail("message larger than " + std::to_string(limit_) + " bytes", EMSGSIZE);
    }
    if (auto received = receive(socket, wanted); !received) {
      return std::unexpected(received.error());
    }
    if (end != nullptr) {
      sawMore_ = available > wanted;
      partial_.text.pop_back();
      frame = std::exchange(partial_, Frame{});
      return Outcome::message;
    }
  }
  return Outcome::progress;
}

/// Takes exactly `count` bytes, all of which have been peeked at. One recvmsg stops behind bytes that came with
/// descriptors, hence the loop.
Result<void> FrameReader::receive(BorrowedFd socket, std::size_t count) {
  ControlBuffer control; // NOLINT(cppcoreguidelines-pro-type-member-init): filled by recvmsg
  while (count > 0) {
    const std::size_t before = partial_.text.size();
    if (partial_.text.capacity() < before + count) {
      partial_.text.reserve(std::max(before + count, 2 * before));
    }
    msghdr message{};
    ssize_t received = -1;
    int error = 0;
    partial_.text.resize_and_overwrite(before + count, [&](char* text, std::size_t) {
      iovec vector{text + before, count};
      message.msg_iov = &vector;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      received = receiveRetrying(socket, message, MSG_CMSG_CLOEXEC);
      error = errno;
      return before + (received > 0 ? static_cast<std::size_t>(received) : 0);
    });
    if (received < 0) {
      return failErrno("receive a message", error);
    }
    if (received == 0) {
      return fail("the peer closed the connection inside a message");
    }
    if (auto kept = keepDescriptors(message); !kept) {
      return kept;
    }
    count -= static_cast<std::size_t>(received);
  }
  return {};
}

Result<void> FrameReader::keepDescriptors(const msghdr& message) {
  // CMSG_NXTHDR takes a pointer to non-const, but only reads.
  auto& header = const_cast<msghdr&>(message); // NOLINT(cppcoreguidelines-pro-type-const-cast)
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const std::size_t bytes = part->cmsg_len - CMSG_LEN(0);
    for (std::size_t offset = 0; offset + sizeof(int) <= bytes; offset += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + offset, sizeof descriptor);
      partial_.descriptors.emplace_back(descriptor, closer_);
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    // The buffer has room for all that one sendmsg may carry: the kernel ran into RLIMIT_NOFILE instead.
    dropDescriptors(EMFILE);
  } else if (partial_.descriptors.size() > kDescriptorLimit) {
    dropDescriptors(E2BIG);
  } else if (partial_.descriptorError != 0 && !partial_.descriptors.empty()) {
    // To go on would let one message bring any number of descriptors, while closing them may take its time.
    return fail("the peer sends descriptors without end", E2BIG);
  }
  return {};
}

void FrameReader::dropDescriptors(int error) {
  partial_.descriptors.clear();
  partial_.descriptorError = error;
}

} // namespace btfd::varlink
