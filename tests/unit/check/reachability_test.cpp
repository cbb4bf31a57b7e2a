// Which instructions the verifier looks at: straight code, conditions, calls, spills and constants.
#include "check/reachability.h"
#include "test_support/elf_maker.h"
#include "test_support/files.h"

#include <gtest/gtest.h>

#include <vector>

namespace btfd::check {
namespace {

using test_support::ElfMaker;

constexpr std::uint8_t kR0 = 0;
constexpr std::uint8_t kR1 = 1;
constexpr std::uint8_t kR6 = 6;
constexpr std::uint8_t kR10 = 10;

bpf_insn instruction(int code, std::uint8_t to, std::uint8_t from, std::int16_t offset, std::int32_t immediate) {
  bpf_insn made{};
  made.code = static_cast<std::uint8_t>(code);
  made.dst_reg = to & 0xfU;
  made.src_reg = from & 0xfU;
  made.off = offset;
  made.imm = immediate;
  return made;
}

bpf_insn move(std::uint8_t to, std::int32_t value) {
  return instruction(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value);
}

bpf_insn copy(std::uint8_t to, std::uint8_t from) {
  return instruction(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}

bpf_insn add(std::uint8_t to, std::int32_t value) {
  return instruction(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, value);
}

bpf_insn jumpIfEqual(std::uint8_t left, std::int32_t value, std::int16_t over) {
  return instruction(BPF_JMP | BPF_JEQ | BPF_K, left, 0, over, value);
}

bpf_insn jump(std::int16_t over) {
  return instruction(BPF_JMP | BPF_JA, 0, 0, over, 0);
}

bpf_insn helper(std::int32_t id) {
  return instruction(BPF_JMP | BPF_CALL, 0, 0, 0, id);
}

bpf_insn callOwn(std::int32_t over) {
  return instruction(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, over);
}

bpf_insn store(std::uint8_t base, std::int16_t offset, std::uint8_t from) {
  return instruction(BPF_STX | BPF_MEM | BPF_DW, base, from, offset, 0);
}

bpf_insn load(std::uint8_t to, std::uint8_t base, std::int16_t offset) {
  return instruction(BPF_LDX | BPF_MEM | BPF_DW, to, base, offset, 0);
}

bpf_insn leave() {
  return instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/// For each instruction of `code`: '.' if it is never reached, '?' if that depends, 'x' if it always is. The first
/// function has `first` instructions, all that follow are in a second one, which no program begins with.
std::string reach(const std::vector<bpf_insn>& code, std::size_t first = 0) {
  ElfMaker elf;
  const std::size_t section = elf.code("socket", code);
  first = first == 0 ? code.size() : first;
  elf.function("program", section, 0, first);
  if (first < code.size()) {
    elf.localFunction("other", section, first, code.size() - first);
  }
  const auto bytes = object::ClientBytes::read(test_support::memfdOf(elf.bytes()), std::uint64_t{1} << 20U);
  const auto image = object::CheckedImage::check(*bytes);
  const auto read = Code::read(*image);
  const std::vector<Place> entries{{.section = section, .instruction = 0}};
  const Reachability reachability(*read, bytes->bytes(), entries, [](std::string_view) { return Supplied::unknown; });
  std::string text;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const Reach reached = reachability.at({.section = section, .instruction = i});
    text += reached == Reach::always ? 'x' : reached == Reach::depends ? '?' : '.';
  }
  return text;
}

TEST(Reachability, StraightCodeIsReachedUpToItsEnd) {
  EXPECT_EQ(reach({move(kR0, 0), leave(), move(kR0, 1), leave()}), "xx..");
  EXPECT_EQ(reach({jump(1), move(kR0, 1), move(kR0, 0), leave()}), "x.xx");
}

TEST(Reachability, KnownConditionsTakeOneWay) {
  EXPECT_EQ(reach({move(kR1, 0), jumpIfEqual(kR1, 0, 1), move(kR0, 1), leave()}), "xx.x");
  EXPECT_EQ(reach({move(kR1, 1), jumpIfEqual(kR1, 0, 1), move(kR0, 1), leave()}), "xxxx");
  EXPECT_EQ(reach({move(kR1, 5), add(kR1, -5), copy(kR6, kR1), jumpIfEqual(kR6, 0, 1), move(kR0, 1), leave()}),
            "xxxx.x");
}

TEST(Reachability, UnknownConditionsTakeBoth) {
  EXPECT_EQ(reach({load(kR6, kR1, 0), jumpIfEqual(kR6, 0, 1), move(kR0, 1), leave()}), "xxxx");
}

TEST(Reachability, WhatAConditionSaysIsKnownBehindIt) {
  // if (x == 7) { if (x == 7) goto out; unreachable }
  EXPECT_EQ(reach({load(kR6, kR1, 0), jumpIfEqual(kR6, 7, 1), jump(2), jumpIfEqual(kR6, 7, 1), move(kR0, 1), leave()}),
            "xxxx.x");
}

TEST(Reachability, DifferentValuesFromTwoWaysAreUnknown) {
  EXPECT_EQ(reach({load(kR6, kR1, 0), move(kR1, 0), jumpIfEqual(kR6, 0, 1), move(kR1, 1), jumpIfEqual(kR1, 0, 1),
                   move(kR0, 1), leave()}),
            "xxxxxxx");
}

TEST(Reachability, AllKindsOfConditionsAreDecided) {
  const auto taken = [](int operation, std::int32_t left, std::int32_t right, int width) {
    return reach({move(kR1, left), instruction(width | operation | BPF_K, kR1, 0, 1, right), move(kR0, 1), leave()}) ==
           "xx.x";
  };
  for (const int width : {BPF_JMP, BPF_JMP32}) {
    EXPECT_TRUE(taken(BPF_JNE, 1, 2, width));
    EXPECT_TRUE(taken(BPF_JGT, -1, 1, width));
    EXPECT_FALSE(taken(BPF_JSGT, -1, 1, width));
    EXPECT_TRUE(taken(BPF_JGE, 2, 2, width));
    EXPECT_TRUE(taken(BPF_JLT, 1, -1, width));
    EXPECT_TRUE(taken(BPF_JLE, 1, 1, width));
    EXPECT_TRUE(taken(BPF_JSLT, -1, 1, width));
    EXPECT_TRUE(taken(BPF_JSLE, -1, 1, width));
    EXPECT_TRUE(taken(BPF_JSGE, 1, -1, width));
    EXPECT_TRUE(taken(BPF_JSET, 6, 4, width));
    EXPECT_FALSE(taken(BPF_JSET, 6, 1, width));
  }
}

TEST(Reachability, SpilledConstantsAreRemembered) {
  const auto code = [](bpf_insn between, bpf_insn more) {
    return reach({move(kR6, 0), store(kR10, -8, kR6), between, more, load(kR6, kR10, -8), jumpIfEqual(kR6, 0, 1),
                  move(kR0, 1), leave()});
  };
  EXPECT_EQ(code(helper(5), helper(5)), "xxxxxx.x");
  // Written over, or given away.
  EXPECT_EQ(code(move(kR1, 3), store(kR10, -8, kR1)), "xxxxxxxx");
  EXPECT_EQ(code(instruction(BPF_ST | BPF_MEM | BPF_B, kR10, 0, -4, 1), move(kR1, 0)), "xxxxxxxx");
  EXPECT_EQ(reach({move(kR6, 0), store(kR10, -8, kR6), copy(kR1, kR10), add(kR1, -8), helper(5), load(kR6, kR10, -8),
                   jumpIfEqual(kR6, 0, 1), move(kR0, 1), leave()}),
            "xxxxxxxxx");
}

TEST(Reachability, CallsForgetWhatTheyMayChange) {
  EXPECT_EQ(reach({move(kR1, 0), helper(5), jumpIfEqual(kR1, 0, 1), move(kR0, 1), leave()}), "xxxxx");
  EXPECT_EQ(reach({move(kR6, 0), helper(5), jumpIfEqual(kR6, 0, 1), move(kR0, 1), leave()}), "xxx.x");
}

TEST(Reachability, ResultsOfOwnFunctionsAreKnown) {
  EXPECT_EQ(reach({callOwn(3), jumpIfEqual(kR0, 0, 1), move(kR0, 1), leave(), move(kR0, 0), leave()}, 4), "xx.xxx");
  EXPECT_EQ(reach({callOwn(3), jumpIfEqual(kR0, 0, 1), move(kR0, 1), leave(), load(kR0, kR1, 0), leave()}, 4),
            "xxxxxx");
}

TEST(Reachability, ArgumentsOfOwnFunctionsAreKnown) {
  const std::vector<bpf_insn> other{jumpIfEqual(kR1, 0, 1), move(kR0, 1), leave()};
  const auto code = [&](std::vector<bpf_insn> program) {
    const std::size_t first = program.size();
    program.insert(program.end(), other.begin(), other.end());
    return reach(program, first).substr(first);
  };
  EXPECT_EQ(code({move(kR1, 0), callOwn(1), leave()}), "x.x");
  EXPECT_EQ(code({move(kR1, 0), callOwn(3), move(kR1, 1), callOwn(1), leave()}), "xxx");
}

TEST(Reachability, FunctionsThatNobodyCallsAreNotReached) {
  EXPECT_EQ(reach({move(kR0, 0), leave(), move(kR0, 0), leave()}, 2), "xx..");
}

TEST(Reachability, LoopsAndRecursionEnd) {
  EXPECT_EQ(reach({add(kR6, 1), jumpIfEqual(kR6, 100, 1), jump(-3), leave()}), "xxxx");
  EXPECT_EQ(reach({callOwn(1), leave(), callOwn(-1), leave()}, 2), "x.x.");
}

TEST(Reachability, JumpsOutOfTheCodeLeadNowhere) {
  EXPECT_EQ(reach({jump(100), leave()}), "x.");
  EXPECT_EQ(reach({jump(-100), leave()}), "x.");
  EXPECT_EQ(reach({callOwn(1000), leave()}), "xx");
  EXPECT_EQ(reach({instruction(BPF_LD | BPF_IMM | BPF_DW, kR1, 0, 0, 0)}), "x");
}

TEST(Reachability, TooMuchCodeIsUndecided) {
  std::vector<bpf_insn> code;
  for (int i = 0; i < 1'200'000; ++i) {
    code.push_back(move(kR0, i));
  }
  ElfMaker elf;
  const std::size_t section = elf.code("socket", code);
  elf.function("program", section, 0, code.size());
  const auto bytes = object::ClientBytes::read(test_support::memfdOf(elf.bytes()), std::uint64_t{64} << 20U);
  const auto image = object::CheckedImage::check(*bytes);
  const auto read = Code::read(*image);
  const std::vector<Place> entries{{.section = section, .instruction = 0}};
  const Reachability reachability(*read, bytes->bytes(), entries, [](std::string_view) { return Supplied::unknown; });
  EXPECT_EQ(reachability.at({.section = section, .instruction = 0}), Reach::depends);
  EXPECT_EQ(reachability.at({.section = section, .instruction = code.size() - 1}), Reach::depends);
}

TEST(Reachability, WhatLiesOutsideOfTheFrameIsNotFollowed) {
  const auto spilled = [](std::int16_t offset) {
    return reach({move(kR6, 1), store(kR10, offset, kR6), load(kR1, kR10, offset), jumpIfEqual(kR1, 1, 1), move(kR0, 0),
                  leave()});
  };
  EXPECT_EQ(spilled(-8), "xxxx.x");
  EXPECT_EQ(spilled(-512), "xxxx.x");
  EXPECT_EQ(spilled(-520), "xxxxxx");
  EXPECT_EQ(spilled(8), "xxxxxx");
}

} // namespace
} // namespace btfd::check
