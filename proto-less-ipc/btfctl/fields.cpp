#include "btfctl/fields.h"

#include "btfctl/text.h"

namespace btfd::btfctl {

std::string textField(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = field(object, key);
  if (value.is_null()) {
    return {};
  }
  return printable(value.is_string() ? value.get_ref<const std::string&>() : dumped(value));
}

std::int64_t numberField(const nlohmann::json& object, const char* key, std::int64_t fallback) {
  const nlohmann::json& value = field(object, key);
  return value.is_number_integer() ? value.get<std::int64_t>() : fallback;
}

const nlohmann::json& field(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kAbsent;
  if (!object.is_object()) {
    return kAbsent;
  }
  const auto found = object.find(key);
  return found == object.end() ? kAbsent : *found;
}

std::string dumped(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace btfd::btfctl
