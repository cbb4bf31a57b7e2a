#include "varlink/frame_writer.h"

#include "varlink/limits.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>
#include <sys/uio.h>

namespace btfd::varlink {

namespace {

/// Messages without descriptors that one sendmsg takes together.
constexpr std::size_t kGather = 16;

/// One sendmsg. Returns the number of bytes sent, or -1 with errno.
ssize_t sendPart(BorrowedFd socket, std::span<iovec> vectors, std::span<const int> descriptors) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kDescriptorLimit)> control;
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = vectors.size();
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    std::memset(control.data(), 0, message.msg_controllen);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(socket.get(), &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

/// The numbers of `descriptors`, as the control message wants them.
template <typename Descriptors>
std::span<const int> numbersOf(const Descriptors& descriptors, std::array<int, kDescriptorLimit>& numbers) {
  const std::size_t count = std::min(std::size(descriptors), kDescriptorLimit);
  std::transform(std::begin(descriptors), std::begin(descriptors) + static_cast<std::ptrdiff_t>(count), numbers.begin(),
                 [](const auto& descriptor) { return descriptor.get(); });
  return std::span(numbers).first(count);
}

} // namespace

void FrameWriter::enqueue(std::string text, std::vector<UniqueFd> descriptors) {
  text.push_back('\0');
  queuedBytes_ += text.size();
  queue_.push_back({std::move(text), std::move(descriptors)});
}

Result<bool> FrameWriter::flush(BorrowedFd socket) {
  while (!queue_.empty()) {
    std::array<iovec, kGather> vectors; // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
    std::size_t count = 0;
    for (auto& message : queue_) {
      // A message with descriptors starts a sendmsg and ends it: also readers that don't peek then know whose they are.
      const bool alone = count > 0 && (!message.descriptors.empty() || !queue_.front().descriptors.empty());
      if (alone || count == kGather) {
        break;
      }
      const std::size_t skip = count == 0 ? sentOfFirst_ : 0;
      vectors[count++] = {message.text.data() + skip, message.text.size() - skip};
    }
    std::array<int, kDescriptorLimit> numbers; // NOLINT(cppcoreguidelines-pro-type-member-init): filled by numbersOf
    const ssize_t sent =
        sendPart(socket, std::span(vectors).first(count), numbersOf(queue_.front().descriptors, numbers));
    if (sent < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return false;
      }
      return failErrno("send a message", errno);
    }
    advance(static_cast<std::size_t>(sent));
  }
  return true;
}

void FrameWriter::advance(std::size_t bytes) {
  queue_.front().descriptors.clear(); // They went with the first byte; what remains of the message goes without.
  bytes += sentOfFirst_;
  while (!queue_.empty() && bytes >= queue_.front().text.size()) {
    bytes -= queue_.front().text.size();
    queuedBytes_ -= queue_.front().text.size();
    queue_.pop_front();
    ++sentMessages_;
  }
  sentOfFirst_ = bytes;
}

void FrameWriter::clear() {
  queue_.clear();
  sentOfFirst_ = 0;
  queuedBytes_ = 0;
}

Result<void> sendFrame(BorrowedFd socket, std::string_view text, std::span<const BorrowedFd> descriptors) {
  if (descriptors.size() > kDescriptorLimit) {
    return fail("a message carries at most " + std::to_string(kDescriptorLimit) + " descriptors, not " +
                    std::to_string(descriptors.size()),
                E2BIG);
  }
  std::array<int, kDescriptorLimit> numbers; // NOLINT(cppcoreguidelines-pro-type-member-init): filled by numbersOf
  std::span<const int> attached = numbersOf(descriptors, numbers);
  char nul = '\0';
  std::size_t done = 0;
  while (done <= text.size()) {
    // sendmsg only reads from what iov_base points to.
    std::array<iovec, 2> vectors{{{const_cast<char*>(text.data()) + done, text.size() - done}, {&nul, 1}}};
    const ssize_t sent = sendPart(socket, vectors, attached);
    if (sent < 0) {
      return failErrno("send a message", errno == EAGAIN ? ETIMEDOUT : errno);
    }
    done += static_cast<std::size_t>(sent);
    attached = {};
  }
  return {};
}

} // namespace btfd::varlink
