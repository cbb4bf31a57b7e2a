#pragma once

#include <bit>
#include <cstdint>

#include <linux/bpf.h>

namespace btfd::test_support {

/// `instruction` as a machine of the other byte order has it: the registers change places, too.
inline bpf_insn swapped(const bpf_insn& instruction) {
  bpf_insn result = instruction;
  result.dst_reg = instruction.src_reg;
  result.src_reg = instruction.dst_reg;
  result.off = static_cast<std::int16_t>(std::byteswap(static_cast<std::uint16_t>(instruction.off)));
  result.imm = static_cast<std::int32_t>(std::byteswap(static_cast<std::uint32_t>(instruction.imm)));
  return result;
}

} // namespace btfd::test_support
