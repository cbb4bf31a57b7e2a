#include "service_manager.h"

#include <systemd/sd-daemon.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string_view>

namespace btfd {

namespace {

/// FileDescriptorName= of btfd.socket.
constexpr std::string_view kSocketName = "varlink";

std::uint64_t monotonicMicroseconds() {
  struct timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

} // namespace

ServiceManager::ServiceManager(boost::asio::io_context& context) : watchdogTimer_(context) {
  std::uint64_t interval = 0;
  if (::sd_watchdog_enabled(0, &interval) > 0) {
    watchdogInterval_ = std::chrono::microseconds(interval);
  }
}

Result<std::vector<UniqueFd>> ServiceManager::takeSockets() const {
  char** names = nullptr;
  const int count = ::sd_listen_fds_with_names(1, &names);
  if (count < 0) {
    return failErrno("cannot take over the sockets of the service manager", -count);
  }
  std::vector<UniqueFd> sockets;
  for (int i = 0; i < count; ++i) {
    UniqueFd descriptor(SD_LISTEN_FDS_START + i);
    if (kSocketName == names[i] && ::sd_is_socket(descriptor.get(), AF_UNIX, SOCK_STREAM, 1) > 0) {
      sockets.push_back(std::move(descriptor));
    }
    std::free(names[i]); // NOLINT(cppcoreguidelines-no-malloc): as sd_listen_fds_with_names(3) wants it
  }
  std::free(names); // NOLINT(cppcoreguidelines-no-malloc)
  return sockets;
}

void ServiceManager::ready(const std::string& status) const {
  ::sd_notify(0, ("READY=1\nSTATUS=" + status).c_str());
}

void ServiceManager::reloading() const {
  ::sd_notify(0, ("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(monotonicMicroseconds())).c_str());
}

void ServiceManager::stopping() const {
  ::sd_notify(0, "STOPPING=1");
}

void ServiceManager::feedWatchdog() {
  if (watchdogInterval_.count() > 0) {
    feed();
  }
}

void ServiceManager::feed() {
  ::sd_notify(0, "WATCHDOG=1");
  watchdogTimer_.expires_after(watchdogInterval_ / 4);
  watchdogTimer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      feed();
    }
  });
}

} // namespace btfd
