#include "descriptor_selection.h"

#include <algorithm>
#include <string>
#include <vector>

namespace btfd::service {

namespace {

void add(SelectedDescriptors& selected, const char* kind, const std::string& name, BorrowedFd descriptor,
         const registry::Link* link = nullptr) {
  nlohmann::json entry;
  entry["kind"] = kind;
  entry["name"] = name;
  if (link != nullptr) {
    entry["linkId"] = link->id;
  }
  selected.descriptors.add(entry, descriptor);
  selected.entries.push_back(std::move(entry));
}

/// Adds those of `all`, programs or maps, that field `field` names.
template <typename Named>
loader::Outcome<void> addNamed(SelectedDescriptors& selected, const std::vector<Named>& all, const char* kind,
                               const nlohmann::json& parameters, const char* field) {
  const auto names = parameters.find(field);
  if (names == parameters.end()) {
    return {};
  }
  for (const auto& name : *names) {
    const auto& text = name.template get_ref<const std::string&>();
    const auto found = std::ranges::find(all, text, &Named::name);
    if (found == all.end()) {
      std::vector<std::string> known;
      std::ranges::transform(all, std::back_inserter(known), &Named::name);
      return loader::noSuchName(kind, text, known);
    }
    add(selected, kind, found->name, found->descriptor);
  }
  return {};
}

void addLink(SelectedDescriptors& selected, const registry::Link& link) {
  for (const UniqueFd& descriptor : link.descriptors) {
    add(selected, "link", link.program, descriptor, &link);
  }
}

loader::Outcome<void> addLinks(SelectedDescriptors& selected, const registry::Object& object,
                               const nlohmann::json& parameters) {
  const auto ids = parameters.find("links");
  if (ids == parameters.end()) {
    return {};
  }
  for (const auto& id : *ids) {
    const auto found = std::ranges::find_if(object.links, [&](const registry::Link& link) { return id == link.id; });
    if (found == object.links.end()) {
      nlohmann::json fields;
      fields["message"] = "object " + std::to_string(object.id) + " has no link " + id.dump();
      fields["linkId"] = id;
      return std::unexpected(loader::Failure{"io.btfd.NoSuchLink", std::move(fields)});
    }
    addLink(selected, *found);
  }
  return {};
}

} // namespace

loader::Outcome<SelectedDescriptors> selectDescriptors(const registry::Object& object,
                                                       const nlohmann::json& parameters) {
  SelectedDescriptors selected;
  if (!parameters.contains("programs") && !parameters.contains("maps") && !parameters.contains("links")) {
    for (const auto& program : object.programs) {
      add(selected, "program", program.name, program.descriptor);
    }
    for (const auto& map : object.maps) {
      add(selected, "map", map.name, map.descriptor);
    }
    for (const auto& link : object.links) {
      addLink(selected, link);
    }
    return selected;
  }
  if (auto added = addNamed(selected, object.programs, "program", parameters, "programs"); !added) {
    return std::unexpected(std::move(added.error()));
  }
  if (auto added = addNamed(selected, object.maps, "map", parameters, "maps"); !added) {
    return std::unexpected(std::move(added.error()));
  }
  if (auto added = addLinks(selected, object, parameters); !added) {
    return std::unexpected(std::move(added.error()));
  }
  return selected;
}

} // namespace btfd::service
