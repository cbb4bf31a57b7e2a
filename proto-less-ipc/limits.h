#pragma once

#include <chrono>
#include <cstddef>

namespace btfd::varlink {

/// Bytes of one message without its NUL, at most. The same as sd-varlink's, so that what one side can send the other
/// can read.
inline constexpr std::size_t kMessageLimit = std::size_t{16} << 20;

/// Descriptors of one message: what the kernel lets one sendmsg carry (SCM_MAX_FD in the kernel's net/scm.h).
inline constexpr std::size_t kDescriptorLimit = 253;

/// Levels of arrays and objects in one message, as sd-varlink allows. Whatever walks a value may recurse this deep.
inline constexpr std::size_t kNestingLimit = 64;

/// Values in one call. A parsed value takes up to fifty times the memory of its text, so the limit on bytes alone would
/// let one call of 16 MiB of "[[],[],..." take half a gigabyte, and seconds, in which nobody else is served. A Load
/// that sets a large array has some ten thousand.
inline constexpr std::size_t kValueLimit = std::size_t{1} << 16;

/// What one server grants its clients.
struct Limits {
  /// Bytes of one message, in either direction; at most kMessageLimit.
  std::size_t messageBytes = kMessageLimit;

  /// Connections at once, as sd-varlink allows. Those past it are accepted and closed, so that nobody hangs in the
  /// backlog.
  std::size_t connections = 4096;

  /// Connections at once of one user, so that no user can take all.
  std::size_t connectionsPerUser = 128;

  /// The same for root, whose services (agents, exporters) all count as one user. Most of the total stays for others.
  std::size_t connectionsOfRoot = 1024;

  /// Bytes of unfinished messages of all connections together. A connection that would exceed it is closed: many
  /// clients that each send most of a large message must not use up the daemon's memory.
  std::size_t unfinishedBytes = std::size_t{256} << 20;

  /// Descriptors that a user has sent and whose close does not end (base/closer.h). Past it, the user's connections
  /// that send more are closed, and new ones are refused.
  std::size_t unclosedDescriptors = 1024;

  /// From the first byte of a message to its last.
  std::chrono::milliseconds receive{30'000};

  /// Until the peer has taken a message that fills its socket buffer. A client that does not read is closed.
  std::chrono::milliseconds send{30'000};

  /// Notifications (replies with `continues`) that wait for a slow reader; later ones are dropped and `Call::notify`
  /// says so.
  std::size_t queuedNotifications = 1024;

  /// The same in bytes: a thousand small ones or a few with long texts.
  std::size_t queuedBytes = std::size_t{1} << 20;
};

} // namespace btfd::varlink
