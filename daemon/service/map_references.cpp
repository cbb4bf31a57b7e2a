#include "map_references.h"

#include "answers.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace btfd::service {

namespace {

constexpr std::array kFields{"reuseMap", "innerMap"};

loader::Failure notYours(const registry::Object& object) {
  nlohmann::json fields;
  fields["message"] = quoted(object) + " belongs to user " + std::to_string(object.owner) +
                      "; only maps of your own objects can be used";
  fields["ownerUid"] = object.owner;
  return {"io.btfd.NotOwner", std::move(fields)};
}

/// The map that `reference`, an io.btfd.MapOfObject, names.
loader::Outcome<BorrowedFd> find(const nlohmann::json& reference, uid_t owner, registry::Registry& registry) {
  const auto id = reference.at("objectId").get<std::int64_t>();
  const registry::Object* object = registry.find(static_cast<std::uint64_t>(id));
  if (object == nullptr) {
    return std::unexpected(noSuchObject(id));
  }
  if (object->owner != owner) {
    return std::unexpected(notYours(*object));
  }
  const auto name = reference.at("map").get<std::string>();
  const registry::Map* map = object->findMap(name);
  if (map == nullptr) {
    std::vector<std::string> known;
    std::ranges::transform(object->maps, std::back_inserter(known), &registry::Map::name);
    return loader::noSuchName("map", name, known);
  }
  return map->descriptor;
}

} // namespace

loader::Outcome<void> addReferencedMaps(Job& job, uid_t owner, registry::Registry& registry) {
  const nlohmann::json& parameters = job.body.at("parameters");
  const auto maps = parameters.find("maps");
  if (maps == parameters.end()) {
    return {};
  }
  std::vector<BorrowedFd> found;
  for (const auto& [name, request] : maps->items()) {
    for (const char* field : kFields) {
      const auto reference = request.find(field);
      if (reference == request.end()) {
        continue;
      }
      const auto map = find(*reference, owner, registry);
      if (!map) {
        return std::unexpected(map.error());
      }
      job.body["heldMaps"][name][field] = job.descriptors.size() + found.size();
      found.push_back(*map);
    }
  }
  auto duplicates = varlink::duplicate(found);
  if (!duplicates) {
    return std::unexpected(failureOf(duplicates.error()));
  }
  std::ranges::move(*duplicates, std::back_inserter(job.descriptors));
  return {};
}

} // namespace btfd::service
