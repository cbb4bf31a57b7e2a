#include "varlink/call.h"

#include "varlink/call_state.h"
#include "varlink/connection.h"
#include "varlink/errors.h"
#include "varlink/limits.h"

#include <cerrno>
#include <cstring>
#include <utility>

namespace btfd::varlink {

using nlohmann::json;

json errors::systemFields(int code) {
  const char* name = ::strerrorname_np(code);
  return json{{"origin", "linux"}, {"errno", code}, {"errnoName", name != nullptr ? name : std::to_string(code)}};
}

Call::Call(std::unique_ptr<State> state) : state_(std::move(state)) {}

Call::Call(Call&&) noexcept = default;

Call& Call::operator=(Call&& other) noexcept {
  Call old(std::exchange(state_, std::move(other.state_)));
  return *this;
}

Call::~Call() {
  if (!state_) {
    return;
  }
  if (const auto connection = state_->connection.lock(); connection && !isOneway() && connection->reachable()) {
    connection->reportUnanswered(method());
  }
  systemError(EIO);
}

const std::string& Call::method() const {
  return state_->message.method;
}

const json& Call::parameters() const {
  return state_->message.parameters;
}

json Call::takeParameters() {
  return std::exchange(state_->message.parameters, json::object());
}

std::size_t Call::descriptorCount() const {
  return state_->descriptors.size();
}

Result<UniqueFd> Call::takeDescriptor(std::int64_t index) {
  if (index < 0 || static_cast<std::uint64_t>(index) >= state_->descriptors.size()) {
    return fail("file descriptor " + std::to_string(index) + " did not come with the call", EBADF);
  }
  UniqueFd descriptor = std::move(state_->descriptors[static_cast<std::size_t>(index)]);
  if (!descriptor) {
    return fail("file descriptor " + std::to_string(index) + " is used twice", EBADF);
  }
  return descriptor;
}

const Peer& Call::peer() const {
  return *state_->peer;
}

Result<UniqueFd> Call::peerProcess() const {
  const auto connection = state_->connection.lock();
  return connection ? connection->peerProcess() : failErrno("open the peer's process", ENOTCONN);
}

bool Call::wantsMore() const {
  return state_->message.more;
}

bool Call::isOneway() const {
  return state_->message.oneway;
}

std::size_t Call::messageLimit() const {
  const auto connection = state_->connection.lock();
  return connection ? connection->messageLimit() : kMessageLimit;
}

bool Call::connected() const {
  const auto connection = state_->connection.lock();
  return connection && connection->reachable();
}

bool Call::notify(const json& parameters, std::vector<UniqueFd> descriptors) {
  const auto connection = state_ ? state_->connection.lock() : nullptr;
  if (!connection || !wantsMore()) {
    return false;
  }
  connection->checkReply(*this, parameters);
  return connection->notify(formatReply(parameters, true), std::move(descriptors));
}

void Call::whenSent(std::function<void()> callback) {
  if (const auto connection = state_->connection.lock()) {
    connection->whenSent(std::move(callback));
  }
}

Result<PreparedReply> Call::prepare(const json& parameters, std::vector<UniqueFd> descriptors) const {
  if (descriptors.size() > kDescriptorLimit) {
    return fail("an answer carries at most " + std::to_string(kDescriptorLimit) + " descriptors, not " +
                    std::to_string(descriptors.size()),
                E2BIG);
  }
  if (const auto connection = state_->connection.lock()) {
    connection->checkReply(*this, parameters);
  }
  std::string text = formatReply(parameters, false);
  if (text.size() > messageLimit()) {
    return fail("the answer takes " + std::to_string(text.size()) + " bytes, and a message has at most " +
                    std::to_string(messageLimit()),
                EMSGSIZE);
  }
  return PreparedReply(std::move(text), std::move(descriptors));
}

void Call::reply(PreparedReply prepared) {
  if (state_) {
    answer(std::move(prepared.text_), std::move(prepared.descriptors_));
  }
}

void Call::reply(const json& parameters, std::vector<UniqueFd> descriptors) {
  if (!state_) {
    return;
  }
  if (!connected()) {
    return answer({}, {}); // Many calls may wait of a client that is gone: their answers are not even made.
  }
  auto prepared = prepare(parameters, std::move(descriptors));
  if (!prepared) {
    return systemError(prepared.error().code);
  }
  reply(std::move(*prepared));
}

void Call::error(std::string_view name, const json& fields) {
  if (!state_) {
    return;
  }
  std::string text = formatError(name, fields);
  if (text.size() > messageLimit()) {
    return systemError(EMSGSIZE);
  }
  answer(std::move(text), {});
}

void Call::invalidParameter(std::string_view parameter, std::string_view reason) {
  error(errors::kInvalidParameter, json{{"parameter", parameter}, {"reason", reason}});
}

void Call::systemError(int code) {
  error(errors::kSystem, errors::systemFields(code));
}

void Call::onDisconnect(std::function<void()> callback) {
  if (const auto connection = state_->connection.lock()) {
    connection->onDisconnect(std::move(callback));
  }
}

void Call::answer(std::string text, std::vector<UniqueFd> descriptors) {
  const auto state = std::exchange(state_, nullptr);
  if (const auto connection = state->connection.lock()) {
    if (!state->message.oneway) {
      connection->send(std::move(text), std::move(descriptors));
    }
    connection->onCallDone();
  }
}

Result<std::vector<UniqueFd>> duplicate(std::span<const BorrowedFd> descriptors) {
  std::vector<UniqueFd> duplicates;
  duplicates.reserve(descriptors.size());
  for (const BorrowedFd descriptor : descriptors) {
    UniqueFd copy = descriptor.duplicate();
    if (!copy) {
      return failErrno("duplicate a file descriptor", errno);
    }
    duplicates.push_back(std::move(copy));
  }
  return duplicates;
}

} // namespace btfd::varlink
