// Bitfields: the window that they are read by, and the shifts that then isolate them.
#include "core/value.h"
#include "scenario.h"

#include <cstdint>

namespace btfd::core {
namespace {

/// A bitfield of type `bytes` wide at `bit` with `bits`.
class BitfieldTest : public testing::Test {
 protected:
  struct Answers {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t left = 0;
    std::uint64_t right = 0;

    bool operator==(const Answers&) const = default;
  };

  static void add(BtfMaker& maker, std::size_t bytes, std::uint32_t bit, std::uint32_t bits) {
    maker.structure("s", {{"f", maker.unsignedInteger("t", bytes), bits, bit}}, 64);
  }

  /// As the engine answers for a kernel, if the object has the same.
  static Answers answers(std::size_t bytes, std::uint32_t bit, std::uint32_t bits) {
    Scenario scenario;
    add(scenario.object, bytes, bit, bits);
    add(scenario.kernel, bytes, bit, bits);
    const TypeId root = scenario.object.next() - 1;
    const auto ask = [&](Kind kind, std::int32_t local) {
      const auto result = scenario.ask(kind, root, "0:0", local);
      EXPECT_EQ(result.outcome(), Outcome::resolved) << "fault " << static_cast<int>(result.fault());
      return result.value();
    };
    return {.offset = ask(Kind::fieldByteOffset, 0),
            .size = ask(Kind::fieldByteSize, 0),
            .left = ask(Kind::fieldLeftShift, 0),
            .right = ask(Kind::fieldRightShift, static_cast<std::int32_t>(64 - bits))};
  }

  static Value valueOf(Kind kind, std::size_t bytes, std::uint32_t bit, std::uint32_t bits, bool bigEndian) {
    BtfMaker maker;
    add(maker, bytes, bit, bits);
    const Place place{.last = {.type = maker.next() - 1, .index = 0, .name = "f"}, .bitOffset = bit};
    return fieldValue(kind, Types::ofObject(maker.btf()), place, bigEndian).value();
  }
};

TEST_F(BitfieldTest, IsReadByTheWindowOfItsType) {
  EXPECT_EQ(answers(4, 0, 3), (Answers{.offset = 0, .size = 4, .left = 61, .right = 61}));
  EXPECT_EQ(answers(4, 5, 7), (Answers{.offset = 0, .size = 4, .left = 52, .right = 57}));
  EXPECT_EQ(answers(4, 37, 7), (Answers{.offset = 4, .size = 4, .left = 52, .right = 57}));
  EXPECT_EQ(answers(1, 13, 3), (Answers{.offset = 1, .size = 1, .left = 56, .right = 61}));
  EXPECT_EQ(answers(8, 64, 64), (Answers{.offset = 8, .size = 8, .left = 0, .right = 0}));
}

TEST_F(BitfieldTest, TheWindowIsWidenedUntilItHoldsIt) {
  EXPECT_EQ(answers(1, 6, 4), (Answers{.offset = 0, .size = 2, .left = 54, .right = 60}));
  EXPECT_EQ(answers(1, 14, 4), (Answers{.offset = 0, .size = 4, .left = 46, .right = 60}));
  EXPECT_EQ(answers(2, 30, 4), (Answers{.offset = 0, .size = 8, .left = 30, .right = 60}));
  EXPECT_EQ(answers(4, 96 + 30, 2), (Answers{.offset = 12, .size = 4, .left = 32, .right = 62}));
}

TEST_F(BitfieldTest, WhatNo64BitLoadHoldsIsAnError) {
  Scenario scenario;
  add(scenario.object, 4, 0, 4);
  add(scenario.kernel, 1, 62, 4);
  expectFailed(scenario.ask(Kind::fieldByteOffset, scenario.object.next() - 1, "0:0", 0), Fault::bitfieldTooWide);
  Scenario other;
  add(other.object, 1, 62, 4);
  add(other.kernel, 4, 0, 4);
  expectFailed(other.ask(Kind::fieldByteOffset, other.object.next() - 1, "0:0", 0), Fault::bitfieldTooWide);
  // Whether it is there is no question of how it is read.
  expectResolved(other.ask(Kind::fieldExists, other.object.next() - 1, "0:0", 1), 1);
}

TEST_F(BitfieldTest, OnBigEndianMachinesBitsCountFromTheOtherEnd) {
  EXPECT_EQ(valueOf(Kind::fieldLeftShift, 4, 5, 7, false).value, 64U - 12U);
  EXPECT_EQ(valueOf(Kind::fieldLeftShift, 4, 5, 7, true).value, 32U + 5U);
  EXPECT_EQ(valueOf(Kind::fieldLeftShift, 1, 6, 4, true).value, 48U + 6U);
  EXPECT_EQ(valueOf(Kind::fieldRightShift, 4, 5, 7, true).value, 57U);
  EXPECT_EQ(valueOf(Kind::fieldLeftShift, 8, 10, 20, true).value, 10U);
}

TEST_F(BitfieldTest, CompilersMayReadItAnotherWay) {
  Scenario scenario;
  add(scenario.object, 4, 5, 7);
  add(scenario.kernel, 4, 37, 9);
  const TypeId root = scenario.object.next() - 1;
  for (const std::int32_t local : {0, 1, 4, -3}) {
    expectResolved(scenario.ask(Kind::fieldByteOffset, root, "0:0", local), 4);
    expectResolved(scenario.ask(Kind::fieldByteSize, root, "0:0", local), 4);
    expectResolved(scenario.ask(Kind::fieldLeftShift, root, "0:0", local), 50);
  }
  expectFailed(scenario.ask(Kind::fieldRightShift, root, "0:0", 56), Fault::instructionValue);
  expectFailed(scenario.ask(Kind::fieldSigned, root, "0:0", 1), Fault::instructionValue);
}

TEST_F(BitfieldTest, ALoadKeepsItsWidth) {
  Scenario scenario;
  add(scenario.object, 4, 5, 7);
  add(scenario.kernel, 8, 64 + 5, 7);
  const auto result = scenario.relocate(Kind::fieldByteOffset, scenario.object.next() - 1, "0:0", load(BPF_B, 1));
  EXPECT_EQ(result.code.front(), load(BPF_B, 8));
}

TEST_F(BitfieldTest, ABitfieldMayStandForAPlainFieldButNotInALoad) {
  Scenario scenario;
  const TypeId root = scenario.object.structure("s", {{"f", scenario.object.unsignedInteger()}});
  add(scenario.kernel, 4, 37, 7);
  expectResolved(scenario.ask(Kind::fieldByteOffset, root, "0:0", 0), 4);
  // Sizes 4 and 0: no load reads bits. libbpf says the same.
  expectPoisoned(scenario.relocate(Kind::fieldByteOffset, root, "0:0", load(BPF_W, 0)), Fault::loadSizeChanged);
}

TEST_F(BitfieldTest, APlainFieldMayStandForABitfield) {
  Scenario scenario;
  add(scenario.object, 4, 37, 7);
  const TypeId root = scenario.object.next() - 1;
  const TypeId integer = scenario.kernel.unsignedInteger();
  scenario.kernel.structure("s", {{"a", integer}, {"b", integer}, {"f", integer}});
  expectResolved(scenario.ask(Kind::fieldByteOffset, root, "0:0", 4), 8);
  expectResolved(scenario.ask(Kind::fieldByteSize, root, "0:0", 4), 4);
  expectResolved(scenario.ask(Kind::fieldLeftShift, root, "0:0", 5), 32);
  expectResolved(scenario.ask(Kind::fieldRightShift, root, "0:0", 57), 32);
}

TEST_F(BitfieldTest, MayBeOfAnEnumOrAnInteger) {
  const auto faultOf = [](auto&& make) {
    Scenario scenario;
    const TypeId ours = make(scenario.object);
    const TypeId root = scenario.object.structure("s", {{"f", ours, 3, 2}}, 8);
    const TypeId theirs = make(scenario.kernel);
    scenario.kernel.structure("s", {{"f", theirs, 3, 2}}, 8);
    return scenario.ask(Kind::fieldByteSize, root, "0:0", 0).fault();
  };
  EXPECT_EQ(faultOf([](BtfMaker& maker) { return maker.integer(); }), Fault::none);
  EXPECT_EQ(faultOf([](BtfMaker& maker) { return maker.enumeration("e", {{"A", 1}}); }), Fault::none);
  EXPECT_EQ(faultOf([](BtfMaker& maker) { return maker.enumeration64("e", {{"A", 1}}); }), Fault::none);
  EXPECT_EQ(faultOf([](BtfMaker& maker) { return maker.constant(maker.integer()); }), Fault::none);
  // A pointer's "size" is the id of a type, and a division by zero for void pointers.
  EXPECT_EQ(faultOf([](BtfMaker& maker) { return maker.pointer(); }), Fault::bitfieldOfOddType);
  EXPECT_EQ(faultOf([](BtfMaker& maker) { return maker.structure("t", {}); }), Fault::bitfieldOfOddType);
  EXPECT_EQ(faultOf([](BtfMaker& maker) { return maker.array(maker.integer(), 2); }), Fault::bitfieldOfOddType);
  EXPECT_EQ(faultOf([](BtfMaker& maker) { return maker.forward("w"); }), Fault::bitfieldOfOddType);
}

TEST_F(BitfieldTest, OfATypeWithoutSizeIsAnError) {
  Scenario scenario;
  const TypeId empty = scenario.object.integer();
  const TypeId root = scenario.object.structure("s", {{"f", empty, 3, 2}}, 8);
  scenario.object.type(empty).size = 0;
  scenario.kernel.structure("s", {{"f", scenario.kernel.integer(), 3, 2}}, 8);
  expectFailed(scenario.ask(Kind::fieldByteOffset, root, "0:0", 0), Fault::bitfieldOfOddType);
}

} // namespace
} // namespace btfd::core
