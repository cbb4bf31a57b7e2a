#pragma once

#include <bpf/btf.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace btfd::object {

/// What C type `typeId` of `btf` has in `memory`, in this machine's byte order, as JSON that writeVariable takes.
///
/// Numbers for integers and floats, texts for integers that 64 bits with a sign cannot hold (in decimal; of more than
/// 64 bits, and pointers, in hexadecimal), booleans for bool, enumerators' names for enums, strings for arrays of char
/// that are text, arrays, and objects by member name for structs and unions, those of anonymous ones included; by
/// variable for a section. Nothing if the type is incomplete, broken or not of this size, or if the value has more
/// parts than a client would read: btf may be hostile.
std::optional<nlohmann::json> readValue(const struct ::btf& btf, std::uint32_t typeId,
                                        std::span<const std::byte> memory);

} // namespace btfd::object
