#pragma once

#include "check/object_to_check.h"
#include "check/target_kernel.h"
#include "core/relocation.h"
#include "test_support/btf_maker.h"
#include "test_support/elf_maker.h"
#include "test_support/files.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace btfd::offline {

inline bpf_insn move(std::int32_t value) {
  return {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = value};
}

inline bpf_insn leave() {
  return {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0};
}

inline check::ObjectToCheck read(const std::vector<std::byte>& content) {
  auto object = check::ObjectToCheck::read(test_support::memfdOf(content));
  EXPECT_TRUE(object) << object.error().message;
  return std::move(*object);
}

inline std::unique_ptr<check::TargetKernel> kernelOf(const test_support::BtfMaker& btf) {
  auto kernel = check::TargetKernel::make("test", {.btf = btf.bytes(), .distilledBase = {}});
  EXPECT_TRUE(kernel) << kernel.error().message;
  return std::move(*kernel);
}

/// A CO-RE relocation, and what the compiler has put into its instruction.
struct Question {
  core::Kind kind = core::Kind::fieldByteOffset;
  core::TypeId type = 0;
  const char* access = "0";
  std::int32_t local = 0;
};

/// An object with types `btf` and one program, called "program", in `section`, that moves the answers of `questions`
/// into a register.
inline check::ObjectToCheck objectThatAsks(test_support::BtfMaker& btf, const std::vector<Question>& questions,
                                           const char* section = "socket") {
  std::vector<bpf_insn> code;
  std::vector<test_support::CoreRecord> records;
  for (const Question& each : questions) {
    records.push_back({static_cast<std::uint32_t>(code.size() * sizeof(bpf_insn)), each.type, btf.string(each.access),
                       static_cast<std::uint32_t>(each.kind)});
    code.push_back(move(each.local));
  }
  code.push_back(leave());
  const std::uint32_t name = btf.string(section);
  test_support::ElfMaker elf;
  const std::size_t number = elf.code(section, code);
  elf.function("program", number, 0, code.size());
  elf.section("license", std::as_bytes(std::span("GPL", 4)));
  elf.section(".BTF", btf.bytes());
  elf.section(".BTF.ext", test_support::extensionOf({{name, records}}));
  return read(elf.bytes());
}

} // namespace btfd::offline
