#include "uevent.h"

#include <array>
#include <cerrno>
#include <string_view>

#include <linux/netlink.h>
#include <sys/socket.h>

namespace btfd::service {

namespace {

/// Multicast group of the kernel's own messages; udev's are in group 2 (systemd, sd-device's monitor).
constexpr unsigned kKernelGroup = 1;

/// UEVENT_BUFFER_SIZE of the kernel, and room for the header before it.
constexpr std::size_t kMaximumMessage = 4096;

} // namespace

bool isModuleEvent(std::span<const char> message) {
  const std::string_view whole(message.data(), message.size());
  const auto header = whole.substr(0, whole.find('\0'));
  const auto at = header.find('@');
  if (at == std::string_view::npos) {
    return false;
  }
  const auto action = header.substr(0, at);
  return (action == "add" || action == "remove") && header.substr(at + 1).starts_with("/module/");
}

Result<void> ModuleWatch::start(std::function<void()> onChange) {
  UniqueFd socket(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
  if (!socket) {
    return failErrno("cannot listen to kernel uevents", errno);
  }
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = kKernelGroup;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) < 0) { // NOLINT
    return failErrno("cannot listen to kernel uevents", errno);
  }
  onChange_ = std::move(onChange);
  socket_.assign(socket.release());
  await();
  return {};
}

void ModuleWatch::await() {
  socket_.async_wait(boost::asio::posix::descriptor_base::wait_read, [this](const boost::system::error_code& error) {
    if (!error) {
      receive();
      await();
    }
  });
}

void ModuleWatch::receive() {
  std::array<char, kMaximumMessage> buffer; // NOLINT(cppcoreguidelines-pro-type-member-init): recvfrom fills it
  while (true) {
    sockaddr_nl sender{};
    socklen_t length = sizeof(sender);
    const ssize_t got = ::recvfrom(socket_.native_handle(), buffer.data(), buffer.size(), 0,
                                   reinterpret_cast<sockaddr*>(&sender), &length); // NOLINT
    if (got < 0 && errno == ENOBUFS) {
      onChange_(); // some were lost, perhaps one of a module
      continue;
    }
    if (got <= 0) {
      return;
    }
    // Any process may send to the group; only the kernel's messages have port 0.
    if (sender.nl_pid == 0 && isModuleEvent(std::span(buffer.data(), static_cast<std::size_t>(got)))) {
      onChange_();
    }
  }
}

} // namespace btfd::service
