#pragma once

#include "base/unique_fd.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace btfd::test_support {

/// A TCP socket whose last close(2) blocks until its peer goes away: it lingers, and the peer does not read.
class LingeringSocket {
 public:
  LingeringSocket() {
    const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener.get(), generic, size), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener.get(), generic, &size), 0);
    socket_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket_.get(), generic, size), 0);
    peer_ = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    constexpr linger kForever{.l_onoff = 1, .l_linger = 3600};
    EXPECT_EQ(::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &kForever, sizeof kForever), 0);
    const std::array<char, 65536> bytes{};
    while (::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
  }

  /// The socket.
  [[nodiscard]] BorrowedFd get() const { return socket_; }

  /// The socket, which is not kept any more.
  [[nodiscard]] UniqueFd take() { return std::move(socket_); }

  /// Lets a close end.
  void endClose() { peer_.reset(); }

 private:
  UniqueFd socket_;
  UniqueFd peer_; ///< Closed first: then the socket's close does not block.
};

/// A pipe that tells when all descriptors of its writing end are closed.
class CloseWatch {
 public:
  CloseWatch() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    reading_ = UniqueFd(ends[0]);
    watched_ = UniqueFd(ends[1]);
  }

  /// What is watched.
  [[nodiscard]] UniqueFd take() { return std::move(watched_); }

  [[nodiscard]] BorrowedFd get() const { return watched_; }

  [[nodiscard]] bool closed() const { return hungUpWithin(0); }

  /// Waits for it, but not forever.
  [[nodiscard]] bool becomesClosed() const { return hungUpWithin(20'000); }

 private:
  [[nodiscard]] bool hungUpWithin(int milliseconds) const {
    pollfd state{.fd = reading_.get(), .events = 0, .revents = 0};
    return ::poll(&state, 1, milliseconds) == 1 && (state.revents & POLLHUP) != 0;
  }

  UniqueFd reading_;
  UniqueFd watched_;
};

} // namespace btfd::test_support
