#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace btfd::loader {

/// The body of a ChannelMessage as it travels: CBOR (RFC 8949).
std::vector<std::uint8_t> encodeBody(const nlohmann::json& body);

/// Nothing if `encoded` is nothing that encodeBody gives, or nested deeper than 128 levels. Never throws, whatever the
/// bytes: a worker that a hostile object has taken over must not take the front along.
std::optional<nlohmann::json> decodeBody(std::span<const std::byte> encoded);

} // namespace btfd::loader
