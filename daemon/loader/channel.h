#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace btfd::loader {

/// Bytes of a message's body. As much as a client may send (16 MiB of JSON, which is hardly ever shorter than CBOR) and
/// what the front adds; the front does nothing else while it reads an answer.
inline constexpr std::size_t kMaximumBody = std::size_t{17} << 20;

/// What front and worker tell each other: a JSON value, and descriptors that it refers to by index.
struct ChannelMessage {
  nlohmann::json body;
  std::vector<UniqueFd> descriptors;
};

/// Both ends of a channel between front and worker: a SOCK_SEQPACKET pair, close-on-exec.
struct ChannelPair {
  UniqueFd front;
  UniqueFd worker;
};

Result<ChannelPair> makeChannel();

/// Sends a message. A large body travels in a memfd, so that a message always fits the socket's buffer: the front may
/// send to an idle worker without blocking. Descriptors stay the caller's. Error EPIPE or ECONNRESET: the peer is gone.
/// EMSGSIZE: the body is larger than kMaximumBody. ECONNABORTED: a part was sent and the rest cannot be, so that the
/// channel is of no use any more. After any other error nothing was sent.
Result<void> sendMessage(BorrowedFd channel, const nlohmann::json& body, std::span<const BorrowedFd> descriptors);

/// Puts messages together from packets, as there may be more descriptors than fit one.
class ChannelReader {
 public:
  /// The descriptors that come are closed by `closer`, if there is one.
  explicit ChannelReader(Closer* closer = nullptr) : closer_(closer) {}

  /// Receives a packet from `channel`, and returns the message that it completes, if it does. With a non-blocking
  /// channel, error EAGAIN says that nothing is there. Error ECONNRESET: the peer is gone. EMFILE: this process had no
  /// room for the message's descriptors; the message has been taken, and the next can be.
  Result<std::optional<ChannelMessage>> receive(BorrowedFd channel);

 private:
  Closer* closer_;
  std::vector<std::byte> body_;
  std::vector<UniqueFd> descriptors_;
  bool descriptorsLost_ = false;
};

} // namespace btfd::loader
