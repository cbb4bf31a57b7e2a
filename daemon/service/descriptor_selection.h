#pragma once

#include "loader/failure.h"
#include "object_json.h"
#include "registry/registry.h"

#include <nlohmann/json.hpp>

namespace btfd::service {

/// Descriptors of an object and what they are of.
struct SelectedDescriptors {
  /// io.btfd.Descriptor each.
  nlohmann::json entries = nlohmann::json::array();
  AnswerDescriptors descriptors{true};
};

/// Those that the parameters of io.btfd.GetDescriptors name; all if they name none. The error is io.btfd.NoSuchName,
/// NoSuchLink, or LimitExceeded where they do not fit an answer.
loader::Outcome<SelectedDescriptors> selectDescriptors(const registry::Object& object,
                                                       const nlohmann::json& parameters);

} // namespace btfd::service
