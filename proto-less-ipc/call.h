#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "varlink/interface.h"
#include "varlink/peer.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace btfd::varlink {

namespace detail {
class Connection;
}

/// An answer that is known to fit a message. Made by Call::prepare.
class PreparedReply {
 private:
  friend class Call;

  PreparedReply(std::string text, std::vector<UniqueFd> descriptors)
      : text_(std::move(text)), descriptors_(std::move(descriptors)) {}

  std::string text_;
  std::vector<UniqueFd> descriptors_;
};

/// A call that waits for its answer. Whoever holds it owes exactly one `reply` or `error`, at once or later, from the
/// server's thread. A Call destroyed without has the library answer with an error, so that a bug cannot hang a client.
///
/// An answer is dropped silently when the caller wants none (oneway) or is gone. Answering ends the Call, as moving
/// from it does: later answers are ignored, and nothing may be asked of it.
class Call {
 public:
  Call(Call&&) noexcept;
  Call& operator=(Call&&) noexcept;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call();

  /// "interface.Method"
  [[nodiscard]] const std::string& method() const;

  /// An object that fits the method's input in the IDL. Fields that were null are not in it.
  [[nodiscard]] const nlohmann::json& parameters() const;

  /// Moves the parameters out.
  [[nodiscard]] nlohmann::json takeParameters();

  [[nodiscard]] std::size_t descriptorCount() const;

  /// Takes the descriptor that a field named ...FileDescriptor has as its value. An error if there is none of this
  /// index or if it was taken before.
  Result<UniqueFd> takeDescriptor(std::int64_t index);

  [[nodiscard]] const Peer& peer() const;

  /// A pidfd of the peer; see varlink::peerProcess.
  [[nodiscard]] Result<UniqueFd> peerProcess() const;

  /// Whether the caller takes more than one answer (`notify`).
  [[nodiscard]] bool wantsMore() const;

  /// Whether the caller wants no answer.
  [[nodiscard]] bool isOneway() const;

  /// Bytes that an answer may take (Limits::messageBytes).
  [[nodiscard]] std::size_t messageLimit() const;

  /// Whether an answer can still reach the caller.
  [[nodiscard]] bool connected() const;

  /// Sends an answer that more will follow: only if `wantsMore`. False if it was dropped since too many wait already
  /// (Limits::queuedNotifications, queuedBytes) or the caller is gone.
  bool notify(const nlohmann::json& parameters, std::vector<UniqueFd> descriptors = {});

  /// Has `callback` called once, from the event loop, when the peer has taken all that was sent to it: to go on with a
  /// stream that `notify` had no more room for. Dropped if the caller goes away. Replaces an earlier callback.
  void whenSent(std::function<void()> callback);

  /// Makes the (last) answer, for `reply`, while what it reports can still be undone: once made, it can be sent. Error
  /// EMSGSIZE: it is larger than `messageLimit`; E2BIG: more than kDescriptorLimit descriptors.
  [[nodiscard]] Result<PreparedReply> prepare(const nlohmann::json& parameters,
                                              std::vector<UniqueFd> descriptors = {}) const;

  void reply(PreparedReply prepared);

  /// Sends the (last) answer: an object, or null for none. One that `prepare` refuses becomes an error.
  void reply(const nlohmann::json& parameters = {}, std::vector<UniqueFd> descriptors = {});

  /// Sends the error `name` ("interface.Error") as the (last) answer.
  void error(std::string_view name, const nlohmann::json& fields = {});

  /// Answers with org.varlink.service.InvalidParameter. `reason` reads on from the parameter, as "is missing".
  void invalidParameter(std::string_view parameter, std::string_view reason);

  /// Answers with io.systemd.System, which carries an errno value.
  void systemError(int code);

  /// Has `callback` called once if the caller goes away before the answer, to cancel what is under way. The Call stays
  /// alive and is to be answered or destroyed as usual, which the callback may do. Replaces an earlier callback.
  void onDisconnect(std::function<void()> callback);

 private:
  friend class detail::Connection;
  friend class Service;
  struct State;

  explicit Call(std::unique_ptr<State> state);
  void answer(std::string text, std::vector<UniqueFd> descriptors);

  std::unique_ptr<State> state_;
};

/// Duplicates descriptors that stay their owner's, to be sent with an answer.
Result<std::vector<UniqueFd>> duplicate(std::span<const BorrowedFd> descriptors);

} // namespace btfd::varlink
