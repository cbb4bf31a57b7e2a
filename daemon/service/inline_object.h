#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <string_view>

namespace btfd::service {

/// The object that a client sent as base64 (RFC 4648, with padding), as a sealed memfd. Error code EINVAL: it is no
/// base64.
Result<UniqueFd> decodeInlineObject(std::string_view base64);

} // namespace btfd::service
