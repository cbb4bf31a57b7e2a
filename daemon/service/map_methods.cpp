#include "map_methods.h"

#include "answers.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace btfd::service {

void MapMethods::call(const std::string& method, varlink::Call call) {
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
