#include "target_programs.h"

#include "answers.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>

namespace btfd::service {

namespace {

/// The field of an object in JSON, or null if it is not there.
const nlohmann::json* fieldOf(const nlohmann::json& json, const char* name) {
  const auto found = json.is_object() ? json.find(name) : json.end();
  return !json.is_object() || found == json.end() || found->is_null() ? nullptr : &*found;
}

} // namespace

std::optional<std::vector<std::pair<std::string, UniqueFd>>>
findTargetPrograms(varlink::Call& call, registry::Registry& registry, const policy::Policy& policy) {
  std::vector<std::pair<std::string, UniqueFd>> targets;
  const auto* programs = fieldOf(call.parameters(), "programs");
  if (programs == nullptr) {
    return targets;
  }
  for (const auto& [name, request] : programs->items()) {
    const auto* target = fieldOf(request, "target");
    const auto* objectId = target == nullptr ? nullptr : fieldOf(*target, "objectId");
    const auto* program = target == nullptr ? nullptr : fieldOf(*target, "program");
    if (objectId == nullptr && program == nullptr) {
      continue;
    }
    if (objectId == nullptr || program == nullptr) {
      call.invalidParameter("programs." + name + ".target", "a program of another object takes objectId and program");
      return std::nullopt;
    }
    const registry::Object* object = findOwned(call, objectId->get<std::int64_t>(), registry, policy);
    if (object == nullptr) {
      return std::nullopt;
    }
    const registry::Program* found = object->findProgram(program->get<std::string>());
    if (found == nullptr) {
      std::vector<std::string> known;
      std::ranges::transform(object->programs, std::back_inserter(known), &registry::Program::name);
      answerFailure(call, loader::noSuchName("program", program->get<std::string>(), known).error());
      return std::nullopt;
    }
    UniqueFd duplicate = BorrowedFd(found->descriptor).duplicate();
    if (!duplicate) {
      answerFailure(call, failureOf(Error{.message = "cannot duplicate a program's descriptor", .code = errno}));
      return std::nullopt;
    }
    targets.emplace_back(name, std::move(duplicate));
  }
  return targets;
}

} // namespace btfd::service
