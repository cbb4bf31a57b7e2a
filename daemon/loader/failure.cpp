#include "failure.h"

#include "base/near_misses.h"

#include <cstring>
#include <ranges>

namespace btfd::loader {

namespace {

void shorten(nlohmann::json& value) {
  if (value.is_structured()) {
    for (auto& [field, inner] : value.items()) {
      if (field != "verifierLog") {
        shorten(inner);
      }
    }
  } else if (value.is_string() && value.get_ref<const std::string&>().size() > kLongestText) {
    auto& text = value.get_ref<std::string&>();
    text.resize(kLongestText);
    text += "...";
  }
}

} // namespace

Failure shortened(Failure failure) {
  shorten(failure.parameters);
  return failure;
}

std::string describe(const Failure& failure) {
  const auto text = [&](const char* field) {
    const auto found = failure.parameters.find(field);
    return found == failure.parameters.end() || !found->is_string() ? std::string{} : found->get<std::string>();
  };
  if (std::string message = text("message"); !message.empty()) {
    return message;
  }
  const std::string parameter = text("parameter");
  const std::string reason = text("reason");
  if (parameter.empty() || reason.empty()) {
    return failure.error + (parameter.empty() ? "" : ": " + parameter);
  }
  return parameter + ": " + reason;
}

std::string errnoName(int code) {
  const char* name = ::strerrorname_np(code);
  return name == nullptr ? std::to_string(code) : name;
}

std::unexpected<Failure> invalidParameter(std::string_view path, std::string reason) {
  nlohmann::json parameters{{"parameter", path}};
  parameters["reason"] = std::move(reason);
  return std::unexpected(Failure{"org.varlink.service.InvalidParameter", std::move(parameters)});
}

std::unexpected<Failure> invalidObject(std::string message) {
  return std::unexpected(Failure{"io.btfd.InvalidObject", {{"message", std::move(message)}}});
}

Failure limitExceeded(std::string message, std::string_view limit, std::uint64_t maximum) {
  nlohmann::json fields;
  fields["message"] = std::move(message);
  fields["limit"] = limit;
  fields["maximum"] = maximum;
  return {"io.btfd.LimitExceeded", std::move(fields)};
}

std::unexpected<Failure> noKernelBtf(std::string message) {
  return std::unexpected(Failure{std::string(kNoKernelBtf), {{"message", std::move(message)}}});
}

std::unexpected<Failure> noSuchName(std::string_view kind, std::string_view name,
                                    const std::vector<std::string>& known) {
  const auto near = nearMisses(name, known);
  std::string message = "the object has no " + std::string(kind) + " '" + std::string(name) + "'" +
                        didYouMean(near | std::views::take(1));
  nlohmann::json parameters{{"message", std::move(message)}, {"kind", kind}, {"name", name}};
  parameters["nearMisses"] = near;
  // The client's name may be as long as a message, and is in here twice.
  return std::unexpected(shortened({"io.btfd.NoSuchName", std::move(parameters)}));
}

} // namespace btfd::loader
