#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "varlink/frame.h"

#include <deque>
#include <span>
#include <string>
#include <vector>

namespace btfd::varlink {

/// Messages on their way out of a stream AF_UNIX socket. Each message's descriptors go with its first byte.
class FrameWriter {
 public:
  /// Puts a message behind those that wait. `text` is the JSON text; the NUL is added here.
  void enqueue(std::string text, std::vector<UniqueFd> descriptors = {});

  /// Sends what waits until all is sent (true) or the socket takes no more for now (false): non-blocking sockets, or a
  /// blocking one whose send time-out passed. After an error, EPIPE above all, nothing more can be sent.
  Result<bool> flush(BorrowedFd socket);

  /// Drops what waits.
  void clear();

  [[nodiscard]] bool empty() const { return queue_.empty(); }

  /// Messages that are not sent completely.
  [[nodiscard]] std::size_t queuedMessages() const { return queue_.size(); }

  /// Bytes of these messages, those already sent of the first included.
  [[nodiscard]] std::size_t queuedBytes() const { return queuedBytes_; }

  /// Messages that were sent completely since the start: tells progress from standstill.
  [[nodiscard]] std::size_t sentMessages() const { return sentMessages_; }

 private:
  struct Outgoing {
    std::string text; ///< With the NUL.
    std::vector<UniqueFd> descriptors;
  };

  void advance(std::size_t bytes);

  std::deque<Outgoing> queue_;
  std::size_t sentOfFirst_ = 0;
  std::size_t queuedBytes_ = 0;
  std::size_t sentMessages_ = 0;
};

/// Sends one message with descriptors that stay the caller's, and waits until all of it is sent: for blocking sockets.
/// `text` is the JSON text; the NUL is added here. At most kDescriptorLimit descriptors.
Result<void> sendFrame(BorrowedFd socket, std::string_view text, std::span<const BorrowedFd> descriptors);

} // namespace btfd::varlink
