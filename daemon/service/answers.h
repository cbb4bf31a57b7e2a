#pragma once

#include "config/config.h"
#include "object_json.h"
#include "policy/policy.h"
#include "registry/registry.h"
#include "varlink/call.h"
#include "worker_pool.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

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

/// Answers with `json` and duplicates of the descriptors that it refers to.
void answer(varlink::Call& call, const nlohmann::json& json, const AnswerDescriptors& descriptors);

void answerNoSuchObject(varlink::Call& call, std::int64_t id);
void answerNoSuchLink(varlink::Call& call, std::int64_t id);
void answerNotOwner(varlink::Call& call, const registry::Object& object);
void answerLimitExceeded(varlink::Call& call, const std::string& message, const std::string& limit,
                         std::uint64_t maximum);

/// The object, if it is there and the peer may change it; else null, and the call was answered.
registry::Object* findOwned(varlink::Call& call, std::int64_t id, registry::Registry& registry,
                            const policy::Policy& policy);

/// The deadline that the request asks for; nothing if it is out of range, and then the call was answered.
std::optional<std::chrono::milliseconds> deadlineOf(varlink::Call& call, const config::Config& config);

} // namespace btfd::service
