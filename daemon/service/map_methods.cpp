#include "map_methods.h"

#include "answers.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace btfd::service {

namespace {

/// Whether the call's entry has just what `method` needs; if not, it is answered. That it is an object, the interface
/// file says: its fields are of any type, for which Varlink has no name that all implementations know.
bool checkEntry(varlink::Call& call, std::string_view method) {
  const auto entry = call.parameters().find("entry");
  if (entry == call.parameters().end()) {
    return true; // MapDump
  }
  for (const std::string_view field : {"key", "value"}) {
    const bool wanted = field == "key" || method == "MapUpdate";
    if (entry->contains(field) != wanted) {
      call.invalidParameter("entry." + std::string(field), wanted ? "is missing" : "is not a known field");
      return false;
    }
  }
  const auto& fields = entry->get_ref<const nlohmann::json::object_t&>();
  const auto unknown =
      std::ranges::find_if(fields, [](const auto& field) { return field.first != "key" && field.first != "value"; });
  if (unknown != fields.end()) {
    call.invalidParameter("entry." + shown(unknown->first), "is not a known field");
    return false;
  }
  return true;
}

} // namespace

void MapMethods::call(const std::string& method, varlink::Call call) {
  if (!checkEntry(call, method)) {
    return;
  }
  const registry::Object* object =
      findOwned(call, call.parameters().at("objectId").get<std::int64_t>(), registry_, policy_);
  if (object == nullptr) {
    return;
  }
  const auto name = call.parameters().at("map").get<std::string>();
  const registry::Map* map = object->findMap(name);
  if (map == nullptr) {
    std::vector<std::string> known;
    std::ranges::transform(object->maps, std::back_inserter(known), &registry::Map::name);
    answerFailure(call, loader::noSuchName("map", name, known).error());
    return;
  }
  const std::array<BorrowedFd, 2> held{*object->image, map->descriptor};
  auto duplicates = varlink::duplicate(held);
  if (!duplicates) {
    answerFailure(call, failureOf(duplicates.error()));
    return;
  }
  Job job{.body = {},
          .descriptors = std::move(*duplicates),
          .party = partyOf(call.peer()),
          .deadline = config_.limits.deadline,
          .done = {}};
  job.body["job"] = "map";
  job.body["method"] = method;
  job.body["ofClient"] = 0;
  job.body["image"] = 0;
  job.body["relocated"] = object->relocated;
  job.body["mapDescriptor"] = 1;
  job.body["parameters"] = call.takeParameters();
  const auto kept = std::make_shared<varlink::Call>(std::move(call));
  jobs_.submit(
      kept, std::move(job),
      [kept](JobSubmission::Outcome&& outcome) {
        if (outcome) {
          answer(*kept, outcome->body, AnswerDescriptors(false));
        } else {
          answerFailure(*kept, outcome.error());
        }
      },
      [] {});
}

} // namespace btfd::service
