#pragma once

#include "varlink/call.h"
#include "varlink/message.h"

namespace btfd::varlink {

/// What a Call owns. Private to the library.
struct Call::State {
  std::weak_ptr<detail::Connection> connection;
  std::shared_ptr<const Peer> peer;
  CallMessage message;
  std::vector<UniqueFd> descriptors;
  /// Frame::descriptorError
  int descriptorError = 0;
  /// Set by Service once it is known; for checking replies.
  const Interface* interface = nullptr;
  const MethodDefinition* definition = nullptr;
};

} // namespace btfd::varlink
