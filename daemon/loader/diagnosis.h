#pragma once

#include <bpf/libbpf.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace btfd::loader {

/// What the kernel would not say by itself of errno value `code` for a program of `type`: which capability is missing,
/// whether lockdown forbids it. Empty where there is nothing to add: it states what this process can see and guesses
/// nothing.
std::string explain(int code, enum bpf_prog_type type);

/// The line of a verifier log that says why the program was rejected, or empty.
std::string_view rejectionReason(std::string_view verifierLog);

/// Number of the poisoned instruction that the verifier has reached, as the log has it, or nothing: CO-RE relocations
/// that the kernel lacks something for are made calls of a helper that there is none of (libbpf's
/// bpf_core_poison_insn).
std::optional<std::uint32_t> poisonedInstruction(std::string_view verifierLog);

/// A hint on what to do about a rejection, or empty.
std::string rejectionHint(std::string_view verifierLog);

/// The last `limit` bytes of a log, from the beginning of a line on.
std::string_view logTail(std::string_view log, std::size_t limit);

} // namespace btfd::loader
