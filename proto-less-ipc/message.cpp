#include "varlink/message.h"

#include "varlink/limits.h"

#include <cerrno>
#include <limits>

namespace btfd::varlink {

namespace {

using nlohmann::json;

/// Position behind the string whose opening quote is just before `position`, or the end of `text`.
std::size_t skipString(std::string_view text, std::size_t position) {
  for (;;) {
    const std::size_t quote = text.find('"', position);
    if (quote == std::string_view::npos) {
      return text.size();
    }
    std::size_t backslashes = 0;
    while (quote - backslashes > position && text[quote - backslashes - 1] == '\\') {
      ++backslashes;
    }
    position = quote + 1;
    if (backslashes % 2 == 0) {
      return position;
    }
  }
}

/// Checks what the parser has no limits for, in one pass over the text before anything is allocated. Text that is no
/// JSON may pass; the parser finds that out.
Result<void> checkSize(std::string_view text, std::size_t valueLimit) {
  std::size_t depth = 0;
  std::size_t values = 1;
  for (std::size_t position = 0; position < text.size();) {
    switch (text[position++]) {
    case '"':
      position = skipString(text, position);
      break;
    case '[':
    case '{':
      ++values;
      if (++depth > kNestingLimit) {
        return fail("message nested deeper than " + std::to_string(kNestingLimit) + " levels", E2BIG);
      }
      break;
    case ']':
    case '}':
      depth -= depth > 0 ? 1 : 0;
      break;
    case ',':
      ++values;
      break;
    default:
      break;
    }
  }
  if (values > valueLimit) {
    return fail("message with more than " + std::to_string(valueLimit) + " values", E2BIG);
  }
  return {};
}

Result<json> parseObject(std::string_view text, std::size_t valueLimit) {
  if (auto checked = checkSize(text, valueLimit); !checked) {
    return std::unexpected(checked.error());
  }
  json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) {
    return fail("message is not valid JSON in UTF-8", EBADMSG);
  }
  if (!value.is_object()) {
    return fail("message is not a JSON object", EBADMSG);
  }
  return value;
}

std::unexpected<Error> wrongType(std::string_view field, std::string_view type) {
  return fail("message whose \"" + std::string(field) + "\" is not " + std::string(type), EBADMSG);
}

/// Moves `value` to `parameters`, which are an empty object for null.
Result<void> takeParameters(json& value, json& parameters) {
  if (value.is_object()) {
    parameters = std::move(value);
  } else if (!value.is_null()) {
    return wrongType("parameters", "an object");
  }
  return {};
}

Result<void> takeFlag(std::string_view field, const json& value, bool& flag) {
  if (!value.is_boolean()) {
    return wrongType(field, "a boolean");
  }
  flag = value.get<bool>();
  return {};
}

Result<void> takeString(std::string_view field, json& value, std::string& text) {
  if (!value.is_string()) {
    return wrongType(field, "a string");
  }
  text = std::move(value.get_ref<std::string&>());
  return {};
}

Result<void> takeCallField(const std::string& field, json& value, CallMessage& call) {
  if (field == "method") {
    return takeString(field, value, call.method);
  }
  if (field == "parameters") {
    return takeParameters(value, call.parameters);
  }
  if (field == "oneway") {
    return takeFlag(field, value, call.oneway);
  }
  if (field == "more") {
    return takeFlag(field, value, call.more);
  }
  if (field == "upgrade") {
    return takeFlag(field, value, call.upgrade);
  }
  return fail("message with unknown field \"" + field + "\"", EBADMSG);
}

Result<void> takeReplyField(const std::string& field, json& value, ReplyMessage& reply) {
  if (field == "error") {
    return takeString(field, value, reply.error);
  }
  if (field == "parameters") {
    return takeParameters(value, reply.parameters);
  }
  if (field == "continues") {
    return takeFlag(field, value, reply.continues);
  }
  return {};
}

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace

Result<CallMessage> parseCall(std::string_view text) {
  auto object = parseObject(text, kValueLimit);
  if (!object) {
    return std::unexpected(std::move(object.error()));
  }
  CallMessage call;
  call.parameters = json::object();
  for (auto& [field, value] : object->items()) {
    if (auto taken = takeCallField(field, value, call); !taken) {
      return std::unexpected(std::move(taken.error()));
    }
  }
  if (call.method.empty()) {
    return fail("message without \"method\"", EBADMSG);
  }
  if (int{call.oneway} + int{call.more} + int{call.upgrade} > 1) {
    return fail("message with more than one of \"oneway\", \"more\" and \"upgrade\"", EBADMSG);
  }
  return call;
}

Result<ReplyMessage> parseReply(std::string_view text) {
  auto object = parseObject(text, std::numeric_limits<std::size_t>::max());
  if (!object) {
    return std::unexpected(std::move(object.error()));
  }
  ReplyMessage reply;
  reply.parameters = json::object();
  for (auto& [field, value] : object->items()) {
    if (auto taken = takeReplyField(field, value, reply); !taken) {
      return std::unexpected(std::move(taken.error()));
    }
  }
  return reply;
}

// The envelopes are put together as text, so that parameters, which may be large, need not be copied into another
// value.

std::string formatCall(std::string_view method, const json& parameters, const char* flag) {
  std::string text = R"({"method":)" + dump(json(method));
  if (flag != nullptr) {
    text.append(",\"").append(flag).append("\":true");
  }
  if (!parameters.is_null()) {
    text.append(R"(,"parameters":)").append(dump(parameters));
  }
  return text.append("}");
}

std::string formatReply(const json& parameters, bool continues) {
  std::string text = R"({"parameters":)" + (parameters.is_null() ? "{}" : dump(parameters));
  return text.append(continues ? R"(,"continues":true})" : "}");
}

std::string formatError(std::string_view error, const json& parameters) {
  return R"({"error":)" + dump(json(error)) + R"(,"parameters":)" + (parameters.is_null() ? "{}" : dump(parameters)) +
         "}";
}

} // namespace btfd::varlink
