#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace btfd {

/// What the service manager wants to hear and has to give (sd_notify(3), sd_listen_fds(3)). Each call does nothing
/// where there is no service manager.
class ServiceManager {
 public:
  explicit ServiceManager(boost::asio::io_context& context);

  /// The listening sockets that it passed under the name "varlink". To be called once.
  [[nodiscard]] Result<std::vector<UniqueFd>> takeSockets() const;

  void ready(const std::string& status) const;
  void reloading() const;
  void stopping() const;

  /// Feeds the watchdog from the event loop, so that a loop that hangs is noticed, at a quarter of its interval.
  void feedWatchdog();

 private:
  void feed();

  boost::asio::steady_timer watchdogTimer_;
  std::chrono::microseconds watchdogInterval_{};
};

} // namespace btfd
