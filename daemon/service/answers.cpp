#include "answers.h"

#include <utility>

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

void answer(varlink::Call& call, const nlohmann::json& json, const AnswerDescriptors& descriptors) {
  auto duplicates = varlink::duplicate(descriptors.all());
  if (!duplicates) {
    call.systemError(duplicates.error().code);
    return;
  }
  call.reply(json, std::move(*duplicates));
}

void answerNoSuchObject(varlink::Call& call, std::int64_t id) {
  nlohmann::json fields;
  fields["message"] = "there is no object " + std::to_string(id);
  fields["objectId"] = id;
  call.error("io.btfd.NoSuchObject", fields);
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

void answerLimitExceeded(varlink::Call& call, const std::string& message, const std::string& limit,
                         std::uint64_t maximum) {
  nlohmann::json fields;
  fields["message"] = message;
  fields["limit"] = limit;
  fields["maximum"] = maximum;
  call.error("io.btfd.LimitExceeded", fields);
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
                                            " (limits.maximumDeadlineMs)");
    return std::nullopt;
  }
  return std::chrono::milliseconds{deadline};
}

} // namespace btfd::service
