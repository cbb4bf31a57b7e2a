#include "netlink_dump.h"

#include "base/unique_fd.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <span>

#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

namespace btfd::loader {

namespace {

struct Request {
  nlmsghdr header;
  tcmsg body;
};

/// Reads a T at the beginning of `bytes`; they have no alignment.
template <typename T>
T readAs(std::span<const std::byte> bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), std::min(sizeof(value), bytes.size()));
  return value;
}

/// Calls `each` for the messages of one datagram; true when the answer is complete. An error of the kernel's is one
/// here.
Result<bool> readMessages(std::span<const std::byte> datagram, const std::function<void(const tcmsg&)>& each) {
  bool multipart = false;
  while (datagram.size() >= sizeof(nlmsghdr)) {
    const auto header = readAs<nlmsghdr>(datagram);
    if (header.nlmsg_len < sizeof(nlmsghdr) || header.nlmsg_len > datagram.size()) {
      return fail("the kernel's answer makes no sense", EPROTO);
    }
    const auto body = datagram.subspan(NLMSG_HDRLEN, header.nlmsg_len - NLMSG_HDRLEN);
    if (header.nlmsg_type == NLMSG_DONE) {
      return true;
    }
    if (header.nlmsg_type == NLMSG_ERROR) {
      const int error = readAs<nlmsgerr>(body).error;
      return error == 0 ? Result<bool>(true) : failErrno("rtnetlink", -error);
    }
    multipart = (header.nlmsg_flags & NLM_F_MULTI) != 0;
    each(readAs<tcmsg>(body));
    datagram = datagram.subspan(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), datagram.size()));
  }
  return !multipart;
}

/// Asks rtnetlink one question, and calls `each` for what it answers.
Result<void> ask(std::uint16_t type, std::uint16_t flags, int interface, std::uint32_t parent,
                 const std::function<void(const tcmsg&)>& each) {
  const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  Request request{};
  request.header = {.nlmsg_len = sizeof(request),
                    .nlmsg_type = type,
                    .nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags),
                    .nlmsg_seq = 1,
                    .nlmsg_pid = 0};
  request.body.tcm_family = AF_UNSPEC;
  request.body.tcm_ifindex = interface;
  request.body.tcm_parent = parent;
  if (!socket || ::send(socket.get(), &request, sizeof(request), 0) < 0) {
    return failErrno("cannot ask rtnetlink", errno);
  }
  constexpr std::size_t kLargestDatagram = std::size_t{1} << 16; // the kernel's are at most 32 KiB
  std::vector<std::byte> buffer(kLargestDatagram);
  for (bool complete = false; !complete;) {
    const ssize_t length = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (length < 0) {
      return failErrno("cannot hear rtnetlink", errno);
    }
    const auto read = readMessages(std::span(buffer).first(static_cast<std::size_t>(length)), each);
    if (!read) {
      return std::unexpected(read.error());
    }
    complete = *read;
  }
  return {};
}

} // namespace

Result<std::vector<TcFilterEntry>> tcFiltersOn(int interface, std::uint32_t parent) {
  std::vector<TcFilterEntry> found;
  auto asked = ask(RTM_GETTFILTER, NLM_F_DUMP, interface, parent, [&](const tcmsg& filter) {
    found.push_back({.priority = TC_H_MAJ(filter.tcm_info) >> 16U, .handle = filter.tcm_handle});
  });
  return asked ? Result<std::vector<TcFilterEntry>>(std::move(found)) : std::unexpected(std::move(asked.error()));
}

Result<bool> hasClsact(int interface) {
  bool found = false;
  // The acknowledgement comes also where there is nothing to tell. EINVAL: there was one once.
  auto asked = ask(RTM_GETQDISC, NLM_F_ACK, interface, TC_H_CLSACT, [&](const tcmsg&) { found = true; });
  if (!asked && (asked.error().code == ENOENT || asked.error().code == EINVAL)) {
    return false;
  }
  return asked ? Result<bool>(found) : std::unexpected(std::move(asked.error()));
}

} // namespace btfd::loader
