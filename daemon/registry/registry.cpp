#include "registry.h"

#include <algorithm>
#include <utility>

namespace btfd::registry {

const Program* Object::findProgram(std::string_view programName) const {
  const auto found = std::ranges::find(programs, programName, &Program::name);
  return found == programs.end() ? nullptr : &*found;
}

const Map* Object::findMap(std::string_view mapName) const {
  const auto found = std::ranges::find(maps, mapName, &Map::name);
  return found == maps.end() ? nullptr : &*found;
}

void Registry::giveIds(Object& object) {
  object.id = ++lastObject_;
  for (Link& link : object.links) {
    giveId(link);
  }
}

Object& Registry::add(Object object) {
  if (object.id == 0) {
    giveIds(object);
  }
  for (const Link& link : object.links) {
    objectOfLink_[link.id] = object.id;
  }
  return objects_.emplace(object.id, std::move(object)).first->second;
}

Link& Registry::addLink(Object& object, Link link) {
  if (link.id == 0) {
    giveId(link);
  }
  objectOfLink_[link.id] = object.id;
  return object.links.emplace_back(std::move(link));
}

Object* Registry::find(std::uint64_t id) {
  const auto found = objects_.find(id);
  return found == objects_.end() ? nullptr : &found->second;
}

Object* Registry::findByLink(std::uint64_t linkId) {
  const auto found = objectOfLink_.find(linkId);
  return found == objectOfLink_.end() ? nullptr : find(found->second);
}

std::optional<Object> Registry::take(std::uint64_t id) {
  auto node = objects_.extract(id);
  if (node.empty()) {
    return std::nullopt;
  }
  for (const Link& link : node.mapped().links) {
    objectOfLink_.erase(link.id);
  }
  return std::move(node.mapped());
}

std::optional<Link> Registry::takeLink(std::uint64_t linkId) {
  Object* object = findByLink(linkId);
  if (object == nullptr) {
    return std::nullopt;
  }
  objectOfLink_.erase(linkId);
  const auto found = std::ranges::find(object->links, linkId, &Link::id);
  Link link = std::move(*found);
  object->links.erase(found);
  return link;
}

std::vector<std::uint64_t> Registry::idsOfConnection(std::uint64_t connection) const {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, object] : objects_) {
    if (object.connection == connection) {
      ids.push_back(id);
    }
  }
  return ids;
}

bool Registry::isPinnedByAny(std::string_view path) const {
  return std::ranges::any_of(objects_, [&](const auto& entry) {
    return std::ranges::find(entry.second.pinned, path) != entry.second.pinned.end();
  });
}

} // namespace btfd::registry
