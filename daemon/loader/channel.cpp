#include "channel.h"

#include "base/memfd.h"
#include "message_body.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

namespace btfd::loader {

namespace {

/// SCM_MAX_FD (include/net/scm.h): the kernel takes no more descriptors with one message.
constexpr std::size_t kDescriptorsPerPacket = 253;

/// Larger bodies go in a memfd. Well below the smallest socket buffer that systems are set to (net.core.wmem_default).
constexpr std::size_t kInlineBody = std::size_t{48} << 10;

/// Far more than the largest objects have programs, maps, and links on each CPU.
constexpr std::size_t kMaximumDescriptors = 100'000;

/// In front of each packet.
struct PacketHeader {
  /// Whether further packets of the same message follow.
  std::uint32_t more = 0;
  /// Whether the last descriptor of the message is a memfd that holds the body.
  std::uint32_t bodyInMemfd = 0;
};

union ControlBuffer {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int) * kDescriptorsPerPacket)> space;
};

Result<void> sendPacket(BorrowedFd channel, PacketHeader header, std::span<const std::uint8_t> body,
                        std::span<const BorrowedFd> descriptors) {
  std::array<iovec, 2> parts{
      {{&header, sizeof(header)}, {const_cast<std::uint8_t*>(body.data()), body.size()}}}; // NOLINT
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  ControlBuffer control{};
  if (!descriptors.empty()) {
    message.msg_control = control.space.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
    for (std::size_t i = 0; i < descriptors.size(); ++i) {
      const int fd = descriptors[i].get();
      std::memcpy(CMSG_DATA(rights) + i * sizeof(int), &fd, sizeof(int));
    }
  }
  while (::sendmsg(channel.get(), &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) {
      return failErrno("cannot send to the other process", errno);
    }
  }
  return {};
}

Result<std::vector<std::byte>> fromMemfd(BorrowedFd memfd) {
  struct stat status{};
  if (::fstat(memfd.get(), &status) < 0 || !S_ISREG(status.st_mode) ||
      static_cast<std::size_t>(status.st_size) > kMaximumBody) {
    return fail("the other process sent a body that is no memfd, or too large a one", EPROTO);
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t got = ::pread(memfd.get(), bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (got == 0 || (got < 0 && errno != EINTR)) {
      return failErrno("cannot read a message's memfd", got == 0 ? EIO : errno);
    }
    at += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  return bytes;
}

void takeDescriptors(msghdr& message, std::vector<UniqueFd>& descriptors, Closer* closer) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      descriptors.emplace_back(fd, closer);
    }
  }
}

} // namespace

Result<ChannelPair> makeChannel() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) < 0) {
    return failErrno("cannot make a socket pair for a worker", errno);
  }
  return ChannelPair{.front = UniqueFd(ends[0]), .worker = UniqueFd(ends[1])};
}

Result<void> sendMessage(BorrowedFd channel, const nlohmann::json& body, std::span<const BorrowedFd> descriptors) {
  const std::vector<std::uint8_t> encoded = encodeBody(body);
  if (encoded.size() > kMaximumBody) {
    return fail("what is to be told the other process takes " + std::to_string(encoded.size()) +
                    " bytes, and a message has at most " + std::to_string(kMaximumBody),
                EMSGSIZE);
  }
  std::vector<BorrowedFd> all(descriptors.begin(), descriptors.end());
  UniqueFd memfd;
  if (encoded.size() > kInlineBody) {
    auto filled = sealedMemfd("btfd-message", std::as_bytes(std::span(encoded)));
    if (!filled) {
      return std::unexpected(std::move(filled.error()));
    }
    memfd = std::move(*filled);
    all.emplace_back(memfd);
  }
  // The body goes with the first packet, the descriptors in as many as they need.
  for (std::size_t at = 0; at == 0 || at < all.size();) {
    const std::size_t count = std::min(kDescriptorsPerPacket, all.size() - at);
    const PacketHeader header{.more = at + count < all.size(), .bodyInMemfd = memfd ? 1U : 0U};
    const auto part = at == 0 && !memfd ? std::span(encoded) : std::span<const std::uint8_t>{};
    if (auto sent = sendPacket(channel, header, part, std::span(all).subspan(at, count)); !sent) {
      const int code = sent.error().code;
      const bool gone = code == EPIPE || code == ECONNRESET;
      return at == 0 || gone ? sent : fail(sent.error().message, ECONNABORTED);
    }
    at += std::max<std::size_t>(count, 1);
  }
  return {};
}

Result<std::optional<ChannelMessage>> ChannelReader::receive(BorrowedFd channel) {
  PacketHeader header;
  std::array<std::byte, kInlineBody> buffer; // NOLINT(cppcoreguidelines-pro-type-member-init): recvmsg fills it
  std::array<iovec, 2> parts{{{&header, sizeof(header)}, {buffer.data(), buffer.size()}}};
  ControlBuffer control{};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  message.msg_control = control.space.data();
  message.msg_controllen = control.space.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(channel.get(), &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    return failErrno("cannot receive from the other process", errno);
  }
  takeDescriptors(message, descriptors_, closer_);
  if (got == 0) {
    return failErrno("the other process is gone", ECONNRESET);
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    // The buffer has room for all that a packet may carry: the kernel ran into RLIMIT_NOFILE.
    descriptorsLost_ = true;
  }
  if (descriptorsLost_) {
    descriptors_.clear();
  }
  if (static_cast<std::size_t>(got) < sizeof(header) || (message.msg_flags & MSG_TRUNC) != 0) {
    return fail("the other process sent a broken packet", EPROTO);
  }
  // The body goes with one packet, and descriptors come with the others: so memory for a message is bounded.
  const auto part = std::span(buffer).first(static_cast<std::size_t>(got) - sizeof(header));
  if ((!part.empty() && !body_.empty()) || descriptors_.size() > kMaximumDescriptors) {
    return fail("the other process sends a message without end", EPROTO);
  }
  body_.insert(body_.end(), part.begin(), part.end());
  if (header.more != 0) {
    return std::nullopt;
  }
  if (std::exchange(descriptorsLost_, false)) {
    body_.clear();
    return failErrno("cannot take the other process's descriptors", EMFILE);
  }

  ChannelMessage complete{.body = {}, .descriptors = std::exchange(descriptors_, {})};
  std::vector<std::byte> encoded = std::exchange(body_, {});
  if (header.bodyInMemfd != 0) {
    if (complete.descriptors.empty()) {
      return fail("the other process sent a message without its body", EPROTO);
    }
    auto bytes = fromMemfd(complete.descriptors.back());
    if (!bytes) {
      return std::unexpected(std::move(bytes.error()));
    }
    encoded = std::move(*bytes);
    complete.descriptors.pop_back();
  }
  auto body = decodeBody(encoded);
  if (!body) {
    return fail("the other process sent a message that is no CBOR, or nested too deep", EPROTO);
  }
  complete.body = std::move(*body);
  return complete;
}

} // namespace btfd::loader
