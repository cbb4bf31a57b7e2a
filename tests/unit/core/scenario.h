#pragma once

#include "btf/name_index.h"
#include "core/engine.h"
#include "test_support/btf_maker.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <ostream>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <linux/bpf.h>

inline bool operator==(const bpf_insn& left, const bpf_insn& right) {
  return std::memcmp(&left, &right, sizeof(left)) == 0;
}

// NOLINTNEXTLINE: found by googletest through the type's namespace
inline void PrintTo(const bpf_insn& instruction, std::ostream* out) {
  *out << "{code " << std::hex << unsigned{instruction.code} << std::dec << ", registers "
       << unsigned{instruction.dst_reg} << " " << unsigned{instruction.src_reg} << ", offset " << instruction.off
       << ", immediate " << instruction.imm << "}";
}

namespace btfd::core {

using test_support::BtfMaker;
using test_support::Enumerator;
using test_support::Member;
using test_support::Parameter;

using Code = std::vector<bpf_insn>;

// The instructions that CO-RE relocations stand at, and the ones that libbpf writes over them.

inline bpf_insn move(std::int32_t immediate) {
  return {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 1, .src_reg = 0, .off = 0, .imm = immediate};
}

inline bpf_insn load(int size, std::int16_t offset) {
  return {
      .code = static_cast<std::uint8_t>(BPF_LDX | BPF_MEM | size), .dst_reg = 1, .src_reg = 2, .off = offset, .imm = 0};
}

inline bpf_insn store(int size, std::int16_t offset) {
  return {
      .code = static_cast<std::uint8_t>(BPF_STX | BPF_MEM | size), .dst_reg = 1, .src_reg = 2, .off = offset, .imm = 0};
}

inline bpf_insn storeImmediate(int size, std::int16_t offset, std::int32_t value) {
  return {.code = static_cast<std::uint8_t>(BPF_ST | BPF_MEM | size),
          .dst_reg = 1,
          .src_reg = 0,
          .off = offset,
          .imm = value};
}

/// The two slots of a 64-bit load.
inline Code wide(std::uint64_t value) {
  return {{.code = BPF_LD | BPF_IMM | BPF_DW,
           .dst_reg = 1,
           .src_reg = 0,
           .off = 0,
           .imm = static_cast<std::int32_t>(value)},
          {.code = 0, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = static_cast<std::int32_t>(value >> 32U)}};
}

inline bpf_insn poisoned() {
  return {.code = BPF_JMP | BPF_CALL, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0xbad2310};
}

/// What became of one record, and the code after it.
struct Relocated {
  Relocation relocation;
  Code code;

  [[nodiscard]] Outcome outcome() const { return relocation.outcome; }

  [[nodiscard]] Fault fault() const { return relocation.fault; }

  [[nodiscard]] std::uint64_t value() const { return relocation.value; }
};

/// A question that an object asks.
struct Question {
  Kind kind = Kind::fieldByteOffset;
  TypeId type = 0;
  const char* access = "0";
  Code code = {};
};

/// An object and a kernel.
class Scenario {
 public:
  BtfMaker object;
  BtfMaker kernel;

  /// Relocates `code`, whose first instruction asks.
  Relocated relocate(Kind kind, TypeId type, const char* access, Code code) {
    return relocateAll({{.kind = kind, .type = type, .access = access, .code = std::move(code)}}).front();
  }

  Relocated relocate(Kind kind, TypeId type, const char* access, const bpf_insn& instruction) {
    return relocate(kind, type, access, Code{instruction});
  }

  /// Relocates several pieces of code, each in a section of its own.
  std::vector<Relocated> relocateAll(const std::vector<Question>& questions) {
    Records records;
    std::vector<Relocated> results;
    for (const Question& each : questions) {
      records.records.push_back({.section = static_cast<std::uint32_t>(records.sections.size()),
                                 .instructionOffset = 0,
                                 .type = each.type,
                                 .access = object.string(each.access),
                                 .kind = each.kind});
      records.sections.push_back(0);
      results.push_back({.relocation = {}, .code = each.code});
    }
    std::vector<std::span<std::byte>> sections;
    for (Relocated& each : results) {
      sections.push_back(std::as_writable_bytes(std::span(each.code)));
    }
    const btf::NameIndex index(kernel.btf(), 1);
    const auto relocations =
        core::relocate(Types::ofObject(object.btf()), records, sections, Targets(kernel.btf(), index));
    EXPECT_EQ(relocations.size(), questions.size());
    for (std::size_t i = 0; i < relocations.size(); ++i) {
      results[i].relocation = relocations[i];
    }
    return results;
  }

  /// Relocates a move of `local`, which is what the object was compiled with.
  Relocated ask(Kind kind, TypeId type, const char* access, std::int32_t local) {
    return relocate(kind, type, access, move(local));
  }
};

/// A test of one object and one kernel.
class ScenarioTest : public testing::Test {
 protected:
  Scenario scenario_;
  BtfMaker& object_ = scenario_.object;
  BtfMaker& kernel_ = scenario_.kernel;
};

/// The relocation has its value, in the instruction too (a move).
inline void expectResolved(const Relocated& result, std::uint64_t expected,
                           std::source_location place = std::source_location::current()) {
  const testing::ScopedTrace trace(place.file_name(), static_cast<int>(place.line()), "expected here");
  EXPECT_EQ(result.outcome(), Outcome::resolved) << "fault " << static_cast<int>(result.fault());
  EXPECT_EQ(result.value(), expected);
  EXPECT_EQ(result.code.front(), move(static_cast<std::int32_t>(expected)));
}

inline void expectPoisoned(const Relocated& result, Fault expected,
                           std::source_location place = std::source_location::current()) {
  const testing::ScopedTrace trace(place.file_name(), static_cast<int>(place.line()), "expected here");
  EXPECT_EQ(result.outcome(), Outcome::poisoned);
  EXPECT_EQ(result.fault(), expected) << "fault " << static_cast<int>(result.fault());
  EXPECT_EQ(result.code.front(), poisoned());
}

/// The relocation is an error, and its instruction not poisoned.
inline void expectFailed(const Relocated& result, Fault expected,
                         std::source_location place = std::source_location::current()) {
  const testing::ScopedTrace trace(place.file_name(), static_cast<int>(place.line()), "expected here");
  EXPECT_EQ(result.outcome(), Outcome::failed);
  EXPECT_EQ(result.fault(), expected) << "fault " << static_cast<int>(result.fault());
  EXPECT_NE(result.code.front(), poisoned());
}

} // namespace btfd::core
