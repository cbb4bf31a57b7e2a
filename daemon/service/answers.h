#pragma once

#include "registry/registry.h"
#include "varlink/call.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

/// Errors of io.btfd that several methods answer with.
namespace btfd::service {

inline void answerNoSuchObject(varlink::Call& call, std::int64_t id) {
  nlohmann::json fields;
  fields["message"] = "there is no object " + std::to_string(id);
  fields["objectId"] = id;
  call.error("io.btfd.NoSuchObject", fields);
}

inline void answerNoSuchLink(varlink::Call& call, std::int64_t id) {
  nlohmann::json fields;
  fields["message"] = "there is no link " + std::to_string(id);
  fields["linkId"] = id;
  call.error("io.btfd.NoSuchLink", fields);
}

inline void answerNotOwner(varlink::Call& call, const registry::Object& object) {
  nlohmann::json fields;
  fields["message"] = "object " + std::to_string(object.id) + " ('" + object.name + "') belongs to user " +
                      std::to_string(object.owner) + "; only that user or root may do this";
  fields["ownerUid"] = object.owner;
  call.error("io.btfd.NotOwner", fields);
}

inline void answerLimitExceeded(varlink::Call& call, const std::string& message, const std::string& limit,
                                std::uint64_t maximum) {
  nlohmann::json fields;
  fields["message"] = message;
  fields["limit"] = limit;
  fields["maximum"] = maximum;
  call.error("io.btfd.LimitExceeded", fields);
}

} // namespace btfd::service
