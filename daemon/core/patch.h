#pragma once

#include "relocation.h"
#include "value.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace btfd::core {

/// What is to be written into an instruction.
struct Resolution {
  Value local;
  /// The kernel's answer.
  Value target;
  /// There is no answer, and the question is none that "no" answers.
  bool poison = false;
  /// The field's size changed in a way that no load of another width makes good: only instructions that access memory
  /// are then poisoned.
  bool loadSizeChanged = false;
  /// The kernel's candidates agree on the offset, but not on the size.
  bool loadSizeAmbiguous = false;
};

/// Applies `resolution` to the instruction at byte `offset` of `code`, in the byte order given, as libbpf's
/// bpf_core_patch_insn does. Nothing is written unless the instruction is what the relocation expects.
/// Returns whether it was poisoned, and why.
Expected<Fault> patchInstruction(std::span<std::byte> code, std::size_t offset, const Resolution& resolution,
                                 bool foreign);

/// The helper that is called in place of what the kernel lacks. There is none of this number, which reads "bad relo"
/// (libbpf's bpf_core_poison_insn).
inline constexpr std::int32_t kPoison = 0xbad2310;

/// How many bytes a load or store with this opcode accesses.
std::uint64_t accessBytes(std::uint8_t code);

/// Makes the instruction that byte `offset` of `code` belongs to one that no verifier lets pass, as libbpf's
/// bpf_core_poison_insn does; nothing if there is none.
void poisonInstruction(std::span<std::byte> code, std::size_t offset, bool foreign);

} // namespace btfd::core
