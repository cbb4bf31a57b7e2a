#pragma once

#include <bpf/libbpf.h>

#include <map>
#include <string>
#include <vector>

#include <linux/bpf.h>

namespace btfd::differential {

/// Instructions, by program.
using Code = std::map<std::string, std::vector<bpf_insn>>;

/// Those of `object`, which libbpf has prepared, without the descriptors of maps, whose numbers say nothing.
inline Code codeOf(const bpf_object& object) {
  Code code;
  bpf_program* program = nullptr;
  while ((program = bpf_object__next_program(&object, program)) != nullptr) {
    const bpf_insn* begin = bpf_program__insns(program);
    auto& copy = code[bpf_program__name(program)];
    copy.assign(begin, begin + bpf_program__insn_cnt(program));
    for (bpf_insn& each : copy) {
      const bool mapLoad = each.code == (BPF_LD | BPF_IMM | BPF_DW) &&
                           (each.src_reg == BPF_PSEUDO_MAP_FD || each.src_reg == BPF_PSEUDO_MAP_VALUE);
      if (mapLoad) {
        each.imm = 0;
      }
    }
  }
  return code;
}

} // namespace btfd::differential
