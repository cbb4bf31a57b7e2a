#pragma once

#include "descriptors.h"
#include "failure.h"
#include "job.h"

#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace btfd::loader {

/// What a Load changes of its object's maps before they are created. To be kept until they are.
class MapOptions {
 public:
  /// `held`: by map name, what the front has found for fields that name a map of another object: "reuseMap" and
  /// "innerMap", indices of descriptors. Maps are pinned in `pinDirectory`. All but that must outlive it.
  MapOptions(const MapsByName& maps, const nlohmann::json& held, std::string pinDirectory,
             RequestDescriptors& descriptors)
      : maps_(maps), held_(held), pinDirectory_(std::move(pinDirectory)), descriptors_(descriptors) {}

  /// Does what `requests` want, io.btfd.MapRequest by map name. io.btfd.NoSuchName for a map that the object does not
  /// have; InvalidParameter for what libbpf would not do, or not survive.
  Outcome<void> apply(const nlohmann::json& requests);

 private:
  struct Change;

  Outcome<void> setType(const Change& change) const;
  Outcome<void> setSizes(const Change& change) const;
  Outcome<void> setPlacement(const Change& change) const;
  Outcome<void> setInnerMap(const Change& change);
  Outcome<void> setInnerEntries(const Change& change, const struct bpf_map& form);
  Outcome<void> setPin(const Change& change) const;
  Outcome<void> reuse(const Change& change);
  Outcome<BorrowedFd> given(const Change& change, const char* byDescriptor, const char* byName);

  const MapsByName& maps_;
  const nlohmann::json& held_;
  std::string pinDirectory_;
  RequestDescriptors& descriptors_;
  std::vector<UniqueFd> made_;
};

} // namespace btfd::loader
