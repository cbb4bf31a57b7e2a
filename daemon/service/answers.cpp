#include "answers.h"

#include "varlink/errors.h"
#include "varlink/limits.h"

#include <cerrno>
#include <utility>

#include <sys/resource.h>

namespace btfd::service {

std::string quoted(const registry::Object& object) {
  return "object " + std::to_string(object.id) + " '" + object.name + "'";
}

nlohmann::json eventOf(const registry::Object& object, uid_t uid) {
  nlohmann::json event;
  if (object.id != 0) {
    event["objectId"] = object.id;
  }
  event["objectName"] = object.name;
  event["uid"] = uid;
  return event;
}

Party partyOf(uid_t uid, std::uint64_t connection) {
  return uid == 0 ? Party{0, connection} : Party{uid, 0};
}

Party partyOf(const varlink::Peer& peer) {
  return partyOf(peer.uid, peer.connection);
}

loader::Failure failureOf(const Error& error, std::size_t messageLimit) {
  if (error.code == EMSGSIZE) {
    return loader::limitExceeded(error.message, "messageBytes", messageLimit);
  }
  if (error.code == EMFILE || error.code == ENFILE) {
    struct rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return loader::limitExceeded(
        "the daemon has no file descriptor left for this (" + error.message +
            "); it has one open for each program, map and link. Unload what is not needed, or raise "
            "its RLIMIT_NOFILE (LimitNOFILE= of its unit), which is " +
            std::to_string(limit.rlim_cur),
        "descriptors", limit.rlim_cur);
  }
  return {std::string(varlink::errors::kSystem), varlink::errors::systemFields(error.code)};
}

loader::Outcome<varlink::PreparedReply> prepareAnswer(const varlink::Call& call, const nlohmann::json& json,
                                                      const AnswerDescriptors& descriptors) {
  auto duplicates = varlink::duplicate(descriptors.all());
  if (!duplicates) {
    return std::unexpected(failureOf(duplicates.error()));
  }
  auto prepared = call.prepare(json, std::move(*duplicates));
  if (!prepared) {
    return std::unexpected(failureOf(prepared.error(), call.messageLimit()));
  }
  return std::move(*prepared);
}

void answer(varlink::Call& call, const nlohmann::json& json, const AnswerDescriptors& descriptors) {
  auto prepared = prepareAnswer(call, json, descriptors);
  if (!prepared) {
    answerFailure(call, prepared.error());
    return;
  }
  call.reply(std::move(*prepared));
}

void answerFailure(varlink::Call& call, const loader::Failure& failure) {
  call.error(failure.error, failure.parameters);
}

loader::Failure noSuchObject(std::int64_t id) {
  nlohmann::json fields;
  fields["message"] = "there is no object " + std::to_string(id);
  fields["objectId"] = id;
  return {"io.btfd.NoSuchObject", std::move(fields)};
}

void answerNoSuchObject(varlink::Call& call, std::int64_t id) {
  answerFailure(call, noSuchObject(id));
}

void answerNoSuchLink(varlink::Call& call, std::int64_t id) {
  nlohmann::json fields;
  fields["message"] = "there is no link " + std::to_string(id);
  fields["linkId"] = id;
  call.error("io.btfd.NoSuchLink", fields);
}

void answerNotOwner(varlink::Call& call, const registry::Object& object) {
  nlohmann::json fields;
  fields["message"] = "object " + std::to_string(object.id) + " ('" + object.name + "') belongs to user " +
                      std::to_string(object.owner) + "; only that user or root may do this";
  fields["ownerUid"] = object.owner;
  call.error("io.btfd.NotOwner", fields);
}

registry::Object* findOwned(varlink::Call& call, std::int64_t id, registry::Registry& registry,
                            const policy::Policy& policy) {
  registry::Object* object = registry.find(static_cast<std::uint64_t>(id));
  if (object == nullptr) {
    answerNoSuchObject(call, id);
    return nullptr;
  }
  if (!policy.mayChange(call.peer(), object->owner)) {
    answerNotOwner(call, *object);
    return nullptr;
  }
  return object;
}

std::optional<std::chrono::milliseconds> deadlineOf(varlink::Call& call, const config::Config& config) {
  const auto given = call.parameters().find("deadlineMs");
  if (given == call.parameters().end()) {
    return config.limits.deadline;
  }
  const auto deadline = given->get<std::int64_t>();
  if (deadline <= 0 || deadline > config.limits.maximumDeadline.count()) {
    call.invalidParameter("deadlineMs", "has to be between 1 and " +
                                            std::to_string(config.limits.maximumDeadline.count()) +
                                            " milliseconds (limits.maximumDeadlineMs)");
    return std::nullopt;
  }
  return std::chrono::milliseconds{deadline};
}

} // namespace btfd::service
