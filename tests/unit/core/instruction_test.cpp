// Each form of instruction that a relocation may stand at, and those that it may not.
#include "core/patch.h"
#include "scenario.h"
#include "test_support/byte_order.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <span>

namespace btfd::core {
namespace {

using testing::ElementsAre;

/// The field lies at 4 in the object, at 8 in the kernel.
class InstructionTest : public ScenarioTest {
 protected:
  InstructionTest() { add(object_.unsignedInteger(), kernel_.unsignedInteger()); }

  void add(TypeId object, TypeId kernel) {
    root_ = object_.structure("s", {{"f", object, 0, 32}}, 16);
    kernel_.structure("s", {{"f", kernel, 0, 64}}, 24);
  }

  Relocated relocate(Code code) { return scenario_.relocate(Kind::fieldByteOffset, root_, "0:0", std::move(code)); }

  Fault faultOf(const Code& code) {
    const auto result = relocate(code);
    EXPECT_EQ(result.outcome(), Outcome::failed);
    EXPECT_EQ(result.code, code);
    return result.fault();
  }

  TypeId root_ = 0;
};

TEST_F(InstructionTest, ArithmeticHasItInItsImmediate) {
  for (const int operation : {BPF_MOV, BPF_ADD, BPF_SUB, BPF_AND, BPF_LSH}) {
    for (const int width : {BPF_ALU, BPF_ALU64}) {
      bpf_insn instruction = move(4);
      instruction.code = static_cast<std::uint8_t>(width | operation | BPF_K);
      bpf_insn expected = instruction;
      expected.imm = 8;
      EXPECT_THAT(relocate({instruction}).code, ElementsAre(expected));
    }
  }
}

TEST_F(InstructionTest, ArithmeticOfRegistersIsNoPlaceForIt) {
  bpf_insn instruction = move(4);
  instruction.code = BPF_ALU64 | BPF_ADD | BPF_X;
  EXPECT_EQ(faultOf({instruction}), Fault::instructionKind);
}

TEST_F(InstructionTest, LoadsAndStoresHaveItInTheirOffset) {
  for (const int size : {BPF_B, BPF_H, BPF_W, BPF_DW}) {
    EXPECT_THAT(relocate({load(size, 4)}).code, ElementsAre(load(size, 8)));
    EXPECT_THAT(relocate({store(size, 4)}).code, ElementsAre(store(size, 8)));
    EXPECT_THAT(relocate({storeImmediate(size, 4, -7)}).code, ElementsAre(storeImmediate(size, 8, -7)));
  }
}

TEST_F(InstructionTest, AWideLoadHasItInBothHalves) {
  EXPECT_EQ(relocate(wide(4)).code, wide(8));
}

/// What patchInstruction makes of `code`, which is given to it in the other byte order and read back so.
Code patchedInOtherByteOrder(Code code, const Resolution& resolution) {
  std::ranges::transform(code, code.begin(), test_support::swapped);
  EXPECT_TRUE(patchInstruction(std::as_writable_bytes(std::span(code)), 0, resolution, true));
  std::ranges::transform(code, code.begin(), test_support::swapped);
  return code;
}

TEST(ForeignInstruction, EachFormIsPatchedAsInThisByteOrder) {
  const Resolution resolution{.local = {.value = 4}, .target = {.value = 0x102}};
  EXPECT_THAT(patchedInOtherByteOrder({move(4)}, resolution), ElementsAre(move(0x102)));
  EXPECT_THAT(patchedInOtherByteOrder({load(BPF_W, 4)}, resolution), ElementsAre(load(BPF_W, 0x102)));
  EXPECT_THAT(patchedInOtherByteOrder({store(BPF_H, 4)}, resolution), ElementsAre(store(BPF_H, 0x102)));
  EXPECT_EQ(patchedInOtherByteOrder(wide(4), resolution), wide(0x102));
  const Resolution large{.local = {.value = 4}, .target = {.value = 0x0102030405060708}};
  EXPECT_EQ(patchedInOtherByteOrder(wide(4), large), wide(0x0102030405060708));
}

TEST(ForeignInstruction, TheWidthOfALoadFollowsTheField) {
  const Resolution resolution{.local = {.value = 4, .loadSize = 4}, .target = {.value = 8, .loadSize = 8}};
  EXPECT_THAT(patchedInOtherByteOrder({load(BPF_W, 4)}, resolution), ElementsAre(load(BPF_DW, 8)));
}

TEST(ForeignInstruction, PoisonReadsTheSame) {
  const Resolution resolution{.local = {.value = 4}, .target = {}, .poison = true};
  const bpf_insn poison{.code = BPF_JMP | BPF_CALL, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0xbad2310};
  EXPECT_THAT(patchedInOtherByteOrder({load(BPF_W, 4)}, resolution), ElementsAre(poison));
  EXPECT_THAT(patchedInOtherByteOrder(wide(4), resolution), ElementsAre(poison, poison));
}

TEST(ForeignInstruction, AWideLoadOfAMapIsNotTheOne) {
  Code code = wide(4);
  code[0].src_reg = BPF_PSEUDO_MAP_FD;
  std::ranges::transform(code, code.begin(), test_support::swapped);
  const Resolution resolution{.local = {.value = 4}, .target = {.value = 8}};
  EXPECT_EQ(patchInstruction(std::as_writable_bytes(std::span(code)), 0, resolution, true),
            std::unexpected(Fault::wideLoadForm));
}

TEST_F(InstructionTest, WhatComesAfterIsLeftAlone) {
  const Code rest = {move(4), load(BPF_W, 4)};
  Code code = {load(BPF_W, 4)};
  code.insert(code.end(), rest.begin(), rest.end());
  const auto result = relocate(code);
  EXPECT_EQ(result.code[0], load(BPF_W, 8));
  EXPECT_EQ(result.code[1], rest[0]);
  EXPECT_EQ(result.code[2], rest[1]);
}

TEST_F(InstructionTest, AnInstructionOfAnotherValueIsNotTheOne) {
  EXPECT_EQ(faultOf({move(5)}), Fault::instructionValue);
  EXPECT_EQ(faultOf({load(BPF_W, 5)}), Fault::instructionValue);
  EXPECT_EQ(faultOf({load(BPF_W, -4)}), Fault::instructionValue);
  EXPECT_EQ(faultOf({store(BPF_W, 0)}), Fault::instructionValue);
  EXPECT_EQ(faultOf(wide(5)), Fault::instructionValue);
  EXPECT_EQ(faultOf(wide(4 + (std::uint64_t{1} << 32U))), Fault::instructionValue);
}

TEST_F(InstructionTest, AWideLoadOfAMapOrHalfAWideLoadIsNotTheOne) {
  for (std::size_t slot = 0; slot < 2; ++slot) {
    Code code = wide(4);
    code[slot].src_reg = 1;
    EXPECT_EQ(faultOf(code), Fault::wideLoadForm);
    code = wide(4);
    code[slot].off = 1;
    EXPECT_EQ(faultOf(code), Fault::wideLoadForm);
  }
  Code code = wide(4);
  code[1].code = BPF_ALU | BPF_MOV;
  EXPECT_EQ(faultOf(code), Fault::wideLoadForm);
  code = wide(4);
  code[1].dst_reg = 3;
  EXPECT_EQ(faultOf(code), Fault::wideLoadForm);
  code = {wide(4).front()};
  EXPECT_EQ(faultOf(code), Fault::instructionOutside);
}

TEST_F(InstructionTest, OtherLoadsOfImmediatesAndJumpsAreNoPlaceForIt) {
  bpf_insn instruction = move(4);
  instruction.code = BPF_LD | BPF_ABS | BPF_W;
  EXPECT_EQ(faultOf({instruction}), Fault::wideLoadForm);
  for (const int code : {BPF_JMP | BPF_CALL, BPF_JMP | BPF_EXIT, BPF_JMP | BPF_JEQ | BPF_K, BPF_JMP32 | BPF_JA}) {
    instruction.code = static_cast<std::uint8_t>(code);
    EXPECT_EQ(faultOf({instruction}), Fault::instructionKind);
  }
}

TEST_F(InstructionTest, NoCodeMeansNoSection) {
  EXPECT_EQ(faultOf({}), Fault::sectionMissing);
}

class LoadSizeTest : public InstructionTest {
 protected:
  void retype(TypeId object, TypeId kernel) {
    scenario_ = Scenario();
    add(object, kernel);
  }

  /// The object and the kernel have integers, of these sizes.
  void integers(std::size_t object, std::size_t kernel, int objectSign = 0, int kernelSign = 0) {
    scenario_ = Scenario();
    add(object_.integer("t", object, objectSign), kernel_.integer("t", kernel, kernelSign));
  }
};

TEST_F(LoadSizeTest, UnsignedIntegersAreReadInTheirNewWidth) {
  constexpr std::array<std::pair<std::size_t, int>, 4> kSizes = {{{1, BPF_B}, {2, BPF_H}, {4, BPF_W}, {8, BPF_DW}}};
  for (const auto& [object, before] : kSizes) {
    for (const auto& [kernel, after] : kSizes) {
      integers(object, kernel);
      EXPECT_THAT(relocate({load(before, 4)}).code, ElementsAre(load(after, 8)));
      EXPECT_THAT(relocate({store(before, 4)}).code, ElementsAre(store(after, 8)));
      EXPECT_THAT(relocate({storeImmediate(before, 4, 1)}).code, ElementsAre(storeImmediate(after, 8, 1)));
    }
  }
}

TEST_F(LoadSizeTest, SignedIntegersOfAnotherWidthArePoisoned) {
  for (const auto& [ours, theirs] :
       {std::pair(BTF_INT_SIGNED, 0), std::pair(0, BTF_INT_SIGNED), std::pair(BTF_INT_SIGNED, BTF_INT_SIGNED)}) {
    integers(4, 8, ours, theirs);
    const auto result = relocate({load(BPF_W, 4)});
    expectPoisoned(result, Fault::loadSizeChanged);
    EXPECT_EQ(relocate({load(BPF_W, 5)}).fault(), Fault::instructionValue);
  }
  integers(4, 4, BTF_INT_SIGNED, 0);
  EXPECT_THAT(relocate({load(BPF_W, 4)}).code, ElementsAre(load(BPF_W, 8)));
}

TEST_F(LoadSizeTest, BooleansAndCharactersCountAsUnsigned) {
  integers(1, 4, BTF_INT_BOOL, 0);
  EXPECT_THAT(relocate({load(BPF_B, 4)}).code, ElementsAre(load(BPF_W, 8)));
  integers(1, 4, BTF_INT_CHAR, BTF_INT_BOOL);
  EXPECT_THAT(relocate({load(BPF_B, 4)}).code, ElementsAre(load(BPF_W, 8)));
}

TEST_F(LoadSizeTest, ArithmeticDoesNotCareForTheWidth) {
  integers(4, 8, BTF_INT_SIGNED, BTF_INT_SIGNED);
  expectResolved(relocate({move(4)}), 8);
}

TEST_F(LoadSizeTest, PointersOfA32BitKernelAreReadAs32Bits) {
  scenario_ = Scenario();
  kernel_.unsignedInteger("unsigned long", 4);
  add(object_.pointer(), kernel_.pointer());
  EXPECT_THAT(relocate({load(BPF_DW, 4)}).code, ElementsAre(load(BPF_W, 8)));
}

TEST_F(LoadSizeTest, PointersAreAsLargeAsTheKernelsLong) {
  scenario_ = Scenario();
  kernel_.integer("long int", 8);
  add(object_.pointer(), kernel_.pointer());
  EXPECT_THAT(relocate({load(BPF_DW, 4)}).code, ElementsAre(load(BPF_DW, 8)));
}

TEST_F(LoadSizeTest, OfAnArrayTheElementCounts) {
  scenario_ = Scenario();
  add(object_.array(object_.unsignedInteger("t", 4), 3), kernel_.array(kernel_.unsignedInteger("t", 4), 7));
  EXPECT_THAT(relocate({load(BPF_W, 4)}).code, ElementsAre(load(BPF_W, 8)));
  // libbpf looks at the array's kind, which is no unsigned integer.
  scenario_ = Scenario();
  add(object_.array(object_.unsignedInteger("t", 4), 3), kernel_.array(kernel_.unsignedInteger("t", 8), 3));
  expectPoisoned(relocate({load(BPF_W, 4)}), Fault::loadSizeChanged);
}

TEST_F(LoadSizeTest, AnElementOfAnotherWidthIsAdjusted) {
  scenario_ = Scenario();
  add(object_.array(object_.unsignedInteger("t", 4), 3), kernel_.array(kernel_.unsignedInteger("t", 8), 3));
  const auto result = scenario_.relocate(Kind::fieldByteOffset, root_, "0:0:2", load(BPF_W, 12));
  EXPECT_THAT(result.code, ElementsAre(load(BPF_DW, 24)));
}

TEST_F(LoadSizeTest, ALoadThatIsNotOfTheFieldsWidthIsNotAdjusted) {
  integers(4, 8);
  EXPECT_EQ(faultOf({load(BPF_H, 4)}), Fault::instructionLoadSize);
}

TEST_F(LoadSizeTest, ThereIsNoLoadOf16Bytes) {
  integers(8, 16);
  EXPECT_EQ(faultOf({load(BPF_DW, 4)}), Fault::newLoadSize);
}

TEST_F(LoadSizeTest, StructsOfAnotherSizeArePoisoned) {
  scenario_ = Scenario();
  const TypeId ours = object_.structure("in", {}, 8);
  const TypeId theirs = kernel_.structure("in", {}, 12);
  add(ours, theirs);
  expectPoisoned(relocate({load(BPF_DW, 4)}), Fault::loadSizeChanged);
  expectResolved(relocate({move(4)}), 8);
}

/// Offsets at the edge of what an instruction can hold.
class RangeTest : public testing::Test {
 protected:
  Relocated relocate(std::uint32_t kernelOffset, Code code) {
    Scenario scenario;
    const TypeId root = scenario.object.structure("s", {{"f", scenario.object.unsignedInteger()}});
    scenario.kernel.structure("s", {{"f", scenario.kernel.unsignedInteger(), 0, kernelOffset * 8}}, kernelOffset + 4);
    return scenario.relocate(Kind::fieldByteOffset, root, "0:0", std::move(code));
  }
};

TEST_F(RangeTest, TheOffsetOfALoadHas15Bits) {
  EXPECT_EQ(relocate(32767, {load(BPF_W, 0)}).code.front(), load(BPF_W, 32767));
  const auto result = relocate(32768, {load(BPF_W, 0)});
  EXPECT_EQ(result.outcome(), Outcome::failed);
  EXPECT_EQ(result.fault(), Fault::offsetTooLarge);
  EXPECT_EQ(result.code.front(), load(BPF_W, 0));
}

TEST_F(RangeTest, AnImmediateHoldsAnyOffset) {
  expectResolved(relocate(32768, {move(0)}), 32768);
  expectResolved(relocate(0x1ffffffc, {move(0)}), 0x1ffffffc);
}

TEST(Instruction, PoisonTakesBothSlotsOfAWideLoad) {
  Scenario scenario;
  const TypeId root = scenario.object.structure("s", {{"f", scenario.object.integer()}});
  Code code = wide(0);
  code.push_back(move(1));
  const auto result = scenario.relocate(Kind::fieldByteOffset, root, "0:0", code);
  EXPECT_EQ(result.outcome(), Outcome::poisoned);
  EXPECT_THAT(result.code, ElementsAre(poisoned(), poisoned(), move(1)));
}

TEST(Instruction, PoisonTakesWhateverInstructionThereIs) {
  Scenario scenario;
  const TypeId root = scenario.object.structure("s", {{"f", scenario.object.integer()}});
  bpf_insn jump = move(7);
  jump.code = BPF_JMP | BPF_JA;
  expectPoisoned(scenario.relocate(Kind::fieldByteOffset, root, "0:0", jump), Fault::noCandidate);
  expectPoisoned(scenario.relocate(Kind::fieldByteOffset, root, "0:0", load(BPF_B, 99)), Fault::noCandidate);
}

TEST(Instruction, HalfAWideLoadAtTheEndIsNotPoisoned) {
  Scenario scenario;
  const TypeId root = scenario.object.structure("s", {{"f", scenario.object.integer()}});
  const auto result = scenario.relocate(Kind::fieldByteOffset, root, "0:0", wide(0).front());
  EXPECT_EQ(result.outcome(), Outcome::failed);
  EXPECT_EQ(result.fault(), Fault::instructionOutside);
}

/// An instruction at a given offset of a section.
Expected<Fault> patchAt(std::size_t offset, Code& code) {
  const Resolution resolution{.local = {.value = 1}, .target = {.value = 2}};
  return patchInstruction(std::as_writable_bytes(std::span(code)), offset, resolution, false);
}

TEST(Instruction, LiesWithinItsSectionAndAligned) {
  Code code = {move(1), move(1)};
  const Code before = code;
  for (const std::size_t offset : {1U, 4U, 7U, 9U, 0xffffffffU}) {
    EXPECT_EQ(patchAt(offset, code).error(), Fault::instructionMisaligned) << offset;
  }
  for (const std::size_t offset : {16U, 24U, 0xfffffff8U}) {
    EXPECT_EQ(patchAt(offset, code).error(), Fault::instructionOutside) << offset;
  }
  EXPECT_EQ(patchAt(SIZE_MAX - 7, code).error(), Fault::instructionOutside);
  EXPECT_EQ(code, before);
  EXPECT_EQ(patchAt(8, code), Fault::none);
  EXPECT_THAT(code, ElementsAre(move(1), move(2)));
}

TEST(Instruction, IsPatchedInItsOwnByteOrder) {
  const auto swapped = [](bpf_insn instruction) {
    instruction.off = static_cast<std::int16_t>(__builtin_bswap16(static_cast<std::uint16_t>(instruction.off)));
    instruction.imm = static_cast<std::int32_t>(__builtin_bswap32(static_cast<std::uint32_t>(instruction.imm)));
    const unsigned destination = instruction.dst_reg;
    instruction.dst_reg = instruction.src_reg;
    instruction.src_reg = destination & 0xfU;
    return instruction;
  };
  const Resolution resolution{.local = {.value = 4, .loadSize = 4}, .target = {.value = 0x102, .loadSize = 8}};
  const auto patch = [&](Code code) {
    EXPECT_EQ(patchInstruction(std::as_writable_bytes(std::span(code)), 0, resolution, true), Fault::none);
    return code;
  };
  EXPECT_EQ(patch({swapped(load(BPF_W, 4))}), Code{swapped(load(BPF_DW, 0x102))});
  EXPECT_EQ(patch({swapped(move(4))}), Code{swapped(move(0x102))});
  EXPECT_EQ(patch({swapped(wide(4)[0]), wide(4)[1]}), (Code{swapped(wide(0x102)[0]), wide(0x102)[1]}));
}

} // namespace
} // namespace btfd::core
