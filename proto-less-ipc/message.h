#pragma once

#include "base/error.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace btfd::varlink {

/// A call as the wire has it, apart from its descriptors.
struct CallMessage {
  std::string method;        ///< "interface.Method"
  nlohmann::json parameters; ///< Always an object; empty where the message has none or null.
  bool oneway = false;
  bool more = false;
  bool upgrade = false;
};

/// A reply as the wire has it, apart from its descriptors.
struct ReplyMessage {
  std::string error;         ///< Empty for success.
  nlohmann::json parameters; ///< Always an object.
  bool continues = false;
};

/// Reads a call. Errors are what sd-varlink also ends a connection for: no UTF-8 or JSON, past kNestingLimit or
/// kValueLimit, not an object, no method, an unknown field, a field of the wrong type, more than one of the three
/// flags.
Result<CallMessage> parseCall(std::string_view text);

/// Reads a reply. Fields that are not known are ignored. The server is trusted with the number of values.
Result<ReplyMessage> parseReply(std::string_view text);

/// Writes a call. `flag` is "more", "oneway" or null.
std::string formatCall(std::string_view method, const nlohmann::json& parameters, const char* flag);

/// Writes a reply. Strings in `parameters` that are not UTF-8 have the offending bytes replaced by U+FFFD.
std::string formatReply(const nlohmann::json& parameters, bool continues);

/// Writes an error reply.
std::string formatError(std::string_view error, const nlohmann::json& parameters);

} // namespace btfd::varlink
