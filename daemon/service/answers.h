#pragma once

#include "config/config.h"
#include "loader/failure.h"
#include "object_json.h"
#include "policy/policy.h"
#include "registry/registry.h"
#include "varlink/call.h"
#include "varlink/limits.h"
#include "worker_pool.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What several methods of io.btfd say.
namespace btfd::service {

/// The object in words: "object 3 'name'".
std::string quoted(const registry::Object& object);

/// An io.btfd.Event about `object` that user `uid` is behind, but for kind, time and message.
nlohmann::json eventOf(const registry::Object& object, uid_t uid);

/// Whose turn a job of a user is: all jobs of one user, but each connection of root for itself, since root's are
/// different services.
Party partyOf(uid_t uid, std::uint64_t connection);
Party partyOf(const varlink::Peer& peer);

/// `error`, of the daemon itself, as the answer to a request: io.btfd.LimitExceeded if descriptors have run out or if a
/// message would be too large, else io.systemd.System with its errno value.
loader::Failure failureOf(const Error& error, std::size_t messageLimit = varlink::kMessageLimit);

/// Makes the answer `json` with duplicates of the descriptors that it refers to. The error is for the client.
loader::Outcome<varlink::PreparedReply> prepareAnswer(const varlink::Call& call, const nlohmann::json& json,
                                                      const AnswerDescriptors& descriptors);

/// Answers with `json` and those duplicates, or with the error.
void answer(varlink::Call& call, const nlohmann::json& json, const AnswerDescriptors& descriptors);

void answerFailure(varlink::Call& call, const loader::Failure& failure);

loader::Failure noSuchObject(std::int64_t id);
void answerNoSuchObject(varlink::Call& call, std::int64_t id);
void answerNoSuchLink(varlink::Call& call, std::int64_t id);
void answerNotOwner(varlink::Call& call, const registry::Object& object);

/// The object, if it is there and the peer may change it; else null, and the call was answered.
registry::Object* findOwned(varlink::Call& call, std::int64_t id, registry::Registry& registry,
                            const policy::Policy& policy);

/// The deadline that the request asks for; nothing if it is out of range, and then the call was answered.
std::optional<std::chrono::milliseconds> deadlineOf(varlink::Call& call, const config::Config& config);

} // namespace btfd::service
