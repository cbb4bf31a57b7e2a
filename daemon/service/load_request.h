#pragma once

#include "registry/registry.h"
#include "varlink/call.h"

#include <optional>
#include <string>

namespace btfd::service {

/// What is wrong with a field of a request: to be answered as org.varlink.service.InvalidParameter.
struct InvalidField {
  std::string field;
  std::string reason;
};

/// Checks what the IDL cannot say of a Load: exactly one object, names and labels that can be shown, levels in range.
std::optional<InvalidField> checkLoad(const nlohmann::json& parameters);

/// Checks the labels of a request, if it has any.
std::optional<InvalidField> checkLabels(const nlohmann::json& parameters);

/// The request's kconfig as lines of a kernel's configuration.
std::string kconfigOf(const nlohmann::json& parameters);

/// The labels of a request.
registry::Labels labelsOf(const nlohmann::json& parameters);

/// Takes all descriptors of a call, in order, so that indexes stay what they are.
std::vector<UniqueFd> takeAllDescriptors(varlink::Call& call);

/// What to call the object that a Load passes: its name, or else that of its file (base/object_name.h), which may be
/// empty.
std::string objectNameOf(const nlohmann::json& parameters, const std::vector<UniqueFd>& descriptors);

} // namespace btfd::service
