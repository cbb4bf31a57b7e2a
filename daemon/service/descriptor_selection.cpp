#include "descriptor_selection.h"

#include "answers.h"
#include "varlink/limits.h"

#include <algorithm>
#include <string>
#include <vector>

namespace btfd::service {

namespace {

/// Fails when there are more than fit an answer: a request may name one a million times.
loader::Outcome<void> add(SelectedDescriptors& selected, const char* kind, const std::string& name,
                          BorrowedFd descriptor, const registry::Link* link = nullptr) {
  if (selected.entries.size() == varlink::kDescriptorLimit) {
    return std::unexpected(
        loader::limitExceeded("one answer carries at most " + std::to_string(varlink::kDescriptorLimit) +
                                  " descriptors, and more are asked for; name fewer programs, maps and links",
                              "descriptors", varlink::kDescriptorLimit));
  }
  nlohmann::json entry;
  entry["kind"] = kind;
  entry["name"] = name;
  if (link != nullptr) {
    entry["linkId"] = link->id;
  }
  selected.descriptors.add(entry, descriptor);
  selected.entries.push_back(std::move(entry));
  return {};
}

/// Adds all of `all`, programs or maps.
template <typename Named>
loader::Outcome<void> addAll(SelectedDescriptors& selected, const std::vector<Named>& all, const char* kind) {
  for (const Named& each : all) {
    if (auto added = add(selected, kind, each.name, each.descriptor); !added) {
      return added;
    }
  }
  return {};
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
    if (auto added = add(selected, kind, found->name, found->descriptor); !added) {
      return added;
    }
  }
  return {};
}

loader::Outcome<void> addLink(SelectedDescriptors& selected, const registry::Link& link) {
  for (const UniqueFd& descriptor : link.descriptors) {
    if (auto added = add(selected, "link", link.program, descriptor, &link); !added) {
      return added;
    }
  }
  return {};
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
    if (auto added = addLink(selected, *found); !added) {
      return added;
    }
  }
  return {};
}

/// Adds what `object` has.
loader::Outcome<void> addEverything(SelectedDescriptors& selected, const registry::Object& object) {
  if (auto added = addAll(selected, object.programs, "program"); !added) {
    return added;
  }
  if (auto added = addAll(selected, object.maps, "map"); !added) {
    return added;
  }
  for (const registry::Link& link : object.links) {
    if (auto added = addLink(selected, link); !added) {
      return added;
    }
  }
  return {};
}

/// Adds what `parameters` name.
loader::Outcome<void> addWhatIsNamed(SelectedDescriptors& selected, const registry::Object& object,
                                     const nlohmann::json& parameters) {
  if (auto added = addNamed(selected, object.programs, "program", parameters, "programs"); !added) {
    return added;
  }
  if (auto added = addNamed(selected, object.maps, "map", parameters, "maps"); !added) {
    return added;
  }
  return addLinks(selected, object, parameters);
}

} // namespace

loader::Outcome<SelectedDescriptors> selectDescriptors(const registry::Object& object,
                                                       const nlohmann::json& parameters) {
  const bool everything =
      !parameters.contains("programs") && !parameters.contains("maps") && !parameters.contains("links");
  SelectedDescriptors selected;
  auto added = everything ? addEverything(selected, object) : addWhatIsNamed(selected, object, parameters);
  if (!added) {
    return std::unexpected(std::move(added.error()));
  }
  return selected;
}

} // namespace btfd::service
