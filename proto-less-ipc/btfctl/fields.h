#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace btfd::btfctl {

// Fields of replies, read without trust in their presence or type: the daemon may be newer or older than btfctl.

/// Field `key` of `object` in printable words; empty if it is absent or null.
std::string textField(const nlohmann::json& object, const char* key);

/// Field `key` of `object`; `fallback` if it is no integer.
std::int64_t numberField(const nlohmann::json& object, const char* key, std::int64_t fallback = 0);

/// Field `key` of `object`; null if it is absent. Refers into `object`.
const nlohmann::json& field(const nlohmann::json& object, const char* key);

/// `value` as one line of text, whatever bytes its strings hold.
std::string dumped(const nlohmann::json& value);

} // namespace btfd::btfctl
