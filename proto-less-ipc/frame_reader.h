#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "varlink/frame.h"
#include "varlink/limits.h"

struct msghdr;

namespace btfd::varlink {

/// Cuts the bytes of a stream AF_UNIX socket into messages and gives each message its own descriptors, however the
/// sender batched them. Keeps what has come of a message until the rest comes.
///
/// The kernel hands descriptors out with the first byte read of the sendmsg that carried them, and one read may span
/// several sendmsg. So a read must never go past the end of a message: bytes are first peeked at, without a control
/// buffer, and then exactly those up to the NUL are received.
class FrameReader {
 public:
  enum class Outcome {
    message,    ///< `frame` holds a message.
    progress,   ///< Part of a large message was read: call again, after others had their turn.
    incomplete, ///< The socket has no more for now (non-blocking), or its receive time-out passed (blocking).
    closed,     ///< The peer sends no more, and nothing is left of what it sent.
  };

  /// The descriptors that come are closed by `closer`, if there is one.
  explicit FrameReader(std::size_t limit = kMessageLimit, Closer* closer = nullptr) : limit_(limit), closer_(closer) {}

  /// Reads at most one message from `socket` into `frame`. Works with blocking sockets (waits) and non-blocking ones.
  /// After an error (message past the limit, EOF inside a message, socket error) the stream has no known position:
  /// close it.
  Result<Outcome> read(BorrowedFd socket, Frame& frame);

  /// Whether the last message was followed by more bytes, so that reading on is worth a try before waiting.
  [[nodiscard]] bool sawMore() const { return sawMore_; }

  /// Bytes held of a message that is not complete yet.
  [[nodiscard]] std::size_t unfinishedBytes() const { return partial_.text.size(); }

 private:
  Result<void> receive(BorrowedFd socket, std::size_t count);
  Result<void> keepDescriptors(const ::msghdr& message);
  void dropDescriptors(int error);

  std::size_t limit_;
  Closer* closer_;
  Frame partial_;
  bool sawMore_ = false;
};

} // namespace btfd::varlink
