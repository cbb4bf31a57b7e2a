#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <linux/bpf.h>

namespace btfd::object {

/// What names there are for what instructions refer to by number. Each may be absent, or give an empty text.
struct InstructionNames {
  /// A helper function's, by its number.
  std::function<std::string(std::int32_t helper)> helper;
  /// A function's of the program, by the number of its first instruction.
  std::function<std::string(std::size_t instruction)> function;
  /// What the ld_imm64 at this instruction refers to: a map, a variable, a function.
  std::function<std::string(std::size_t instruction)> reference;
};

/// The instruction at `at` of `code` as the verifier's log has it: "r1 = *(u64 *)(r10 -8)", "if r2 == 0x0 goto pc+3".
/// What is none is "unknown instruction" and its code. `at` is less than the size of `code`.
std::string disassemble(std::span<const struct bpf_insn> code, std::size_t at, const InstructionNames& names);

/// How many slots the instruction at `at` takes: 2 for ld_imm64.
std::size_t slotsOf(const struct bpf_insn& instruction);

} // namespace btfd::object
