#pragma once

#include "failure.h"

#include <bpf/btf.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <span>
#include <string_view>

namespace btfd::loader {

/// Writes JSON `value` into `memory` as C type `typeId` of `btf` has it in this machine's byte order.
///
/// Numbers for integers, floats and pointers, integers also as texts ("18446744073709551615", "0x10"), booleans for
/// bool, numbers or enumerators' names for enums, strings (which have to fit) for arrays of char, arrays (which may be
/// shorter: what is left keeps its value) and objects by member name for structs and unions, by variable for a section.
/// What is not named keeps its value. The error io.btfd.InvalidVariable
/// names the part of the variable, as in "config.limits[2]", and the type it has there.
Outcome<void> writeVariable(const struct ::btf& btf, std::uint32_t typeId, const nlohmann::json& value,
                            std::span<std::byte> memory, std::string_view variable);

} // namespace btfd::loader
