#include "load_request.h"

#include "base/object_name.h"
#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <utility>

namespace btfd::service {

namespace {

constexpr std::size_t kMaximumLabels = 64;
constexpr std::size_t kMaximumLabelKey = 64;
constexpr std::size_t kMaximumLabelValue = 256;

/// Bits of bpf(2)'s log_level (include/linux/bpf_verifier.h, BPF_LOG_MASK).
constexpr std::int64_t kMaximumLogLevel = 7;

/// Far below libbpf's longest line (bpf_object__read_kconfig_mem, 4096), which it would go on with as another.
constexpr std::size_t kMaximumKconfigName = 256;
constexpr std::size_t kMaximumKconfigValue = 1024;

std::optional<InvalidField> checkName(const nlohmann::json& parameters) {
  const auto name = parameters.find("name");
  if (name == parameters.end()) {
    return std::nullopt;
  }
  const auto& text = name->get_ref<const std::string&>();
  if (text.empty() || text.size() > kMaximumObjectName || !isShowable(text)) {
    return InvalidField{"name", "has to have 1 to " + std::to_string(kMaximumObjectName) +
                                    " bytes without control and format characters"};
  }
  return std::nullopt;
}

std::optional<InvalidField> checkLogLevel(const nlohmann::json& request, std::string field) {
  const auto level = request.value("verifierLogLevel", std::int64_t{0});
  if (level < 0 || level > kMaximumLogLevel) {
    return InvalidField{std::move(field), "has to be between 0 and " + std::to_string(kMaximumLogLevel)};
  }
  return std::nullopt;
}

/// They become lines of text.
std::optional<InvalidField> checkKconfig(const nlohmann::json& parameters) {
  const auto kconfig = parameters.find("kconfig");
  if (kconfig == parameters.end()) {
    return std::nullopt;
  }
  for (const auto& [name, value] : kconfig->items()) {
    const auto mayBeInName = [](unsigned char character) { return std::isalnum(character) != 0 || character == '_'; };
    if (name.size() > kMaximumKconfigName || !name.starts_with("CONFIG_") || !std::ranges::all_of(name, mayBeInName)) {
      return InvalidField{"kconfig", "has names such as CONFIG_HZ, of letters, digits and '_', at most " +
                                         std::to_string(kMaximumKconfigName) + " of them"};
    }
    const auto& text = value.get_ref<const std::string&>();
    if (text.empty() || text.size() > kMaximumKconfigValue || !isShowable(text)) {
      return InvalidField{"kconfig." + name,
                          "has to be as in a kernel's .config, such as y, 250 or \"text\", and have 1 to " +
                              std::to_string(kMaximumKconfigValue) + " bytes without control and format characters"};
    }
  }
  return std::nullopt;
}

} // namespace

std::optional<InvalidField> checkLabels(const nlohmann::json& parameters) {
  const auto labels = parameters.find("labels");
  if (labels == parameters.end()) {
    return std::nullopt;
  }
  if (labels->size() > kMaximumLabels) {
    return InvalidField{"labels", "may be at most " + std::to_string(kMaximumLabels)};
  }
  for (const auto& [key, value] : labels->items()) {
    if (key.empty() || key.size() > kMaximumLabelKey || !isShowable(key)) {
      return InvalidField{"labels", "have keys of 1 to " + std::to_string(kMaximumLabelKey) +
                                        " bytes without control and format characters"};
    }
    const auto& text = value.get_ref<const std::string&>();
    if (text.size() > kMaximumLabelValue || !isShowable(text)) {
      return InvalidField{"labels." + key, "has to have at most " + std::to_string(kMaximumLabelValue) +
                                               " bytes without control and format characters"};
    }
  }
  return std::nullopt;
}

std::optional<InvalidField> checkLoad(const nlohmann::json& parameters) {
  const bool byDescriptor = parameters.contains("objectFileDescriptor");
  if (byDescriptor == parameters.contains("object")) {
    return InvalidField{byDescriptor ? "object" : "objectFileDescriptor",
                        byDescriptor ? "cannot be there together with objectFileDescriptor"
                                     : "is missing: an object is needed, as descriptor or, in base64, as object"};
  }
  if (parameters.value("lifetime", "session") != "session") {
    return InvalidField{"lifetime", "can only be \"session\""};
  }
  if (auto invalid = checkName(parameters)) {
    return invalid;
  }
  if (auto invalid = checkLabels(parameters)) {
    return invalid;
  }
  if (auto invalid = checkLogLevel(parameters, "verifierLogLevel")) {
    return invalid;
  }
  const nlohmann::json programs = parameters.value("programs", nlohmann::json::object());
  for (const auto& [name, request] : programs.items()) {
    if (auto invalid = checkLogLevel(request, "programs." + name + ".verifierLogLevel")) {
      return invalid;
    }
  }
  return checkKconfig(parameters);
}

std::string kconfigOf(const nlohmann::json& parameters) {
  std::string text;
  if (const auto kconfig = parameters.find("kconfig"); kconfig != parameters.end()) {
    for (const auto& [name, value] : kconfig->items()) {
      text += name + "=" + value.get<std::string>() + "\n";
    }
  }
  return text;
}

registry::Labels labelsOf(const nlohmann::json& parameters) {
  registry::Labels labels;
  if (const auto given = parameters.find("labels"); given != parameters.end()) {
    for (const auto& [key, value] : given->items()) {
      labels[key] = value.get<std::string>();
    }
  }
  return labels;
}

std::vector<UniqueFd> takeAllDescriptors(varlink::Call& call) {
  std::vector<UniqueFd> descriptors;
  for (std::size_t i = 0; i < call.descriptorCount(); ++i) {
    auto descriptor = call.takeDescriptor(static_cast<std::int64_t>(i));
    descriptors.push_back(descriptor ? std::move(*descriptor) : UniqueFd{});
  }
  return descriptors;
}

std::string objectNameOf(const nlohmann::json& parameters, const std::vector<UniqueFd>& descriptors) {
  if (const auto name = parameters.find("name"); name != parameters.end()) {
    return name->get<std::string>();
  }
  const auto index = parameters.value("objectFileDescriptor", std::int64_t{-1});
  if (index < 0 || static_cast<std::size_t>(index) >= descriptors.size()) {
    return {};
  }
  return objectName(descriptors[static_cast<std::size_t>(index)]);
}

} // namespace btfd::service
