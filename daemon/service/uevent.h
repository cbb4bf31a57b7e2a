#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <functional>
#include <span>

namespace btfd::service {

/// Whether a kernel uevent says that a module came or went: "add@/module/NAME" or "remove@/module/NAME", up to the
/// message's first NUL (lib/kobject_uevent.c, kobject_uevent_env).
bool isModuleEvent(std::span<const char> message);

/// Hears of modules that come and go by the kernel's uevents (netlink(7), NETLINK_KOBJECT_UEVENT).
class ModuleWatch {
 public:
  explicit ModuleWatch(boost::asio::io_context& context) : socket_(context) {}

  /// Begins to listen; `onChange` is called on the io_context's thread. It is also called when events were lost.
  Result<void> start(std::function<void()> onChange);

 private:
  void await();
  void receive();

  boost::asio::posix::stream_descriptor socket_;
  std::function<void()> onChange_;
};

} // namespace btfd::service
