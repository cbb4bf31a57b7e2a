#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace btfd::loader {

/// The instruction that the verifier was at when it rejected a program, as its log has it.
struct RejectedInstruction {
  /// Its number in the program, functions that libbpf appended to it included.
  std::uint32_t number = 0;
  /// As the kernel writes it: "r0 = *(u32 *)(r1 +0)".
  std::string_view text;
  /// The line of source that it comes from, if the object has line information. From Linux 6.9 on the kernel says which
  /// line that is: " @ xdp.c:20" follows it.
  std::string_view source;
};

/// Finds it in a log that was written at level 1 or 2 and whose end is there; nothing where there is none, as when the
/// program was refused before its instructions were looked at. The views are into `log`.
std::optional<RejectedInstruction> findRejectedInstruction(std::string_view log);

/// "instruction 1, r0 = *(u32 *)(r1 +0), of xdp.c:20: return *(int*)data;".
std::string inWords(const RejectedInstruction& instruction);

} // namespace btfd::loader
