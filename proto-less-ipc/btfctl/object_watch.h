#pragma once

#include "base/unique_fd.h"
#include "btfctl/daemon.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace btfd::btfctl {

/// Notices when somebody else unloads an object.
///
/// Listens to the daemon's events on a connection of its own: the daemon closes connections whose client is suspended
/// and does not read, and with the connection that loaded the object it would go.
class ObjectWatch {
 public:
  /// Begins to watch object `id`. Nothing if that is not possible, as with a daemon that has no room for one more
  /// connection.
  static std::optional<ObjectWatch> begin(const std::string& socket, std::int64_t id);

  /// Readable when there are events; negative once there will be none any more.
  [[nodiscard]] BorrowedFd fd() const { return events_ ? events_->socket() : BorrowedFd(-1); }

  /// Reads an event. To be called when `fd` is readable.
  void read();

  /// Whether the object is gone.
  [[nodiscard]] bool sawEnd() const { return ended_; }

  /// Who unloaded it, as " by root (0)"; empty where that is not known.
  [[nodiscard]] const std::string& by() const { return by_; }

 private:
  ObjectWatch(Daemon events, std::string socket, std::int64_t id)
      : events_(std::move(events)), socket_(std::move(socket)), id_(id) {}

  /// Asks whether the object is there: events may have been missed.
  void look();

  std::optional<Daemon> events_;
  std::string socket_;
  std::int64_t id_;
  bool ended_ = false;
  std::string by_;
};

} // namespace btfd::btfctl
