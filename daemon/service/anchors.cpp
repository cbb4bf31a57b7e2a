#include "anchors.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace btfd::service {

namespace {

/// The kernel's id of a link; nothing if there is no such link, or it has none.
std::optional<std::uint32_t> kernelIdOf(std::int64_t linkId, registry::Registry& registry) {
  const registry::Object* object = registry.findByLink(static_cast<std::uint64_t>(linkId));
  if (object == nullptr) {
    return std::nullopt;
  }
  return std::ranges::find(object->links, static_cast<std::uint64_t>(linkId), &registry::Link::id)->kernelId;
}

} // namespace

std::optional<InvalidField> resolveAnchors(nlohmann::json& target, const std::string& path,
                                           registry::Registry& registry) {
  for (const char* side : {"before", "after"}) {
    const auto anchor = target.find(side);
    if (anchor == target.end() || !anchor->is_object() || !anchor->contains("linkId")) {
      continue;
    }
    const std::string field = path + "." + side + ".linkId";
    if (anchor->size() > 1) {
      return InvalidField{field, "cannot be there together with another id"};
    }
    const auto id = anchor->at("linkId").get<std::int64_t>();
    const auto kernelId = kernelIdOf(id, registry);
    if (!kernelId) {
      return InvalidField{field, "there is no link " + std::to_string(id) + ", or it is none of the kernel's links"};
    }
    *anchor = {{"kernelLinkId", *kernelId}};
  }
  return std::nullopt;
}

std::optional<InvalidField> resolveAnchorsOfLoad(nlohmann::json& parameters, registry::Registry& registry) {
  const auto programs = parameters.find("programs");
  if (programs == parameters.end()) {
    return std::nullopt;
  }
  for (auto& [name, request] : programs->items()) {
    const auto targets = request.find("attach");
    if (targets == request.end()) {
      continue;
    }
    for (std::size_t i = 0; i < targets->size(); ++i) {
      const std::string path = "programs." + name + ".attach[" + std::to_string(i) + "]";
      if (auto invalid = resolveAnchors((*targets)[i], path, registry)) {
        return invalid;
      }
    }
  }
  return std::nullopt;
}

} // namespace btfd::service
