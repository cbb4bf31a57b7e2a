// The six kinds about fields, and which fields of a kernel stand for one of the object's.
#include "scenario.h"

namespace btfd::core {
namespace {

class FieldTest : public ScenarioTest {
 protected:
  /// Both sides have a struct "s" with a field "f" of these types, after something of 4 bytes in the kernel.
  void types(TypeId object, TypeId kernel) {
    root_ = object_.structure("s", {{"f", object}});
    kernel_.structure("s", {{"before", kernel_.integer()}, {"f", kernel}});
  }

  std::uint64_t exists(const char* access = "0:0") {
    const auto result = scenario_.relocate(Kind::fieldExists, root_, access, move(1));
    EXPECT_EQ(result.outcome(), Outcome::resolved) << "fault " << static_cast<int>(result.fault());
    return result.value();
  }

  TypeId root_ = 0;
};

TEST_F(FieldTest, EachKindHasItsAnswer) {
  types(object_.integer("short", 2), kernel_.unsignedInteger("unsigned int", 4));
  expectResolved(scenario_.ask(Kind::fieldByteOffset, root_, "0:0", 0), 4);
  expectResolved(scenario_.ask(Kind::fieldByteSize, root_, "0:0", 2), 4);
  expectResolved(scenario_.ask(Kind::fieldExists, root_, "0:0", 1), 1);
  expectResolved(scenario_.ask(Kind::fieldSigned, root_, "0:0", 1), 0);
  expectResolved(scenario_.ask(Kind::fieldLeftShift, root_, "0:0", 48), 32);
  expectResolved(scenario_.ask(Kind::fieldRightShift, root_, "0:0", 48), 32);
}

TEST_F(FieldTest, TheObjectsOwnAnswerIsExpectedInTheInstruction) {
  types(object_.integer("short", 2), kernel_.unsignedInteger());
  expectFailed(scenario_.ask(Kind::fieldByteOffset, root_, "0:0", 1), Fault::instructionValue);
  expectFailed(scenario_.ask(Kind::fieldByteSize, root_, "0:0", 4), Fault::instructionValue);
  expectFailed(scenario_.ask(Kind::fieldExists, root_, "0:0", 0), Fault::instructionValue);
  expectFailed(scenario_.ask(Kind::fieldSigned, root_, "0:0", 0), Fault::instructionValue);
  expectFailed(scenario_.ask(Kind::fieldLeftShift, root_, "0:0", 32), Fault::instructionValue);
  expectFailed(scenario_.ask(Kind::fieldRightShift, root_, "0:0", 32), Fault::instructionValue);
}

TEST_F(FieldTest, WhatTheKernelLacksIsPoisonedOrAnsweredWithNo) {
  root_ = object_.structure("s", {{"f", object_.integer()}});
  kernel_.structure("s", {{"g", kernel_.integer()}});
  for (const Kind kind :
       {Kind::fieldByteOffset, Kind::fieldByteSize, Kind::fieldSigned, Kind::fieldLeftShift, Kind::fieldRightShift}) {
    const auto result = scenario_.ask(kind, root_, "0:0", 0);
    expectPoisoned(result, Fault::noMatch);
    EXPECT_EQ(result.relocation.candidates, 1U);
    EXPECT_EQ(result.value(), 0U);
  }
  expectResolved(scenario_.ask(Kind::fieldExists, root_, "0:0", 1), 0);
}

TEST_F(FieldTest, TheTypeOfTheKernelIsNamed) {
  types(object_.integer(), kernel_.integer());
  const auto result = scenario_.ask(Kind::fieldByteOffset, root_, "0:0", 0);
  EXPECT_EQ(result.relocation.type.target, 0U);
  EXPECT_EQ(result.relocation.type.id, kernel_.next() - 1);
  EXPECT_EQ(result.relocation.localValue, 0U);
  EXPECT_EQ(result.relocation.candidates, 1U);
}

TEST_F(FieldTest, IntegersOfEachSizeAndSignStandForEachOther) {
  for (const std::size_t size : {1U, 2U, 4U, 8U, 16U}) {
    for (const int encoding : {0, BTF_INT_SIGNED, BTF_INT_BOOL, BTF_INT_CHAR}) {
      scenario_ = Scenario();
      types(object_.integer(), kernel_.integer("t", size, encoding));
      EXPECT_EQ(exists(), 1U) << size << " bytes, encoding " << encoding;
    }
  }
}

TEST_F(FieldTest, OnlyTypesOfOneKindStandForEachOther) {
  const auto make = [](BtfMaker& maker) {
    return std::vector<TypeId>{maker.integer(),          maker.pointer(),
                               maker.floating(),         maker.enumeration("e", {{"A", 0}}),
                               maker.structure("t", {}), maker.forward("w"),
                               maker.prototype(0, {}),   maker.array(maker.integer("short", 2), 1)};
  };
  const std::size_t kinds = make(object_).size();
  constexpr std::size_t kPrototype = 6;
  for (std::size_t ours = 0; ours < kinds; ++ours) {
    for (std::size_t theirs = 0; theirs < kinds; ++theirs) {
      scenario_ = Scenario();
      const TypeId object = make(object_)[ours];
      const TypeId kernel = make(kernel_)[theirs];
      root_ = object_.structure("s", {{"f", object, 0, 0}}, 8);
      kernel_.structure("s", {{"f", kernel, 0, 0}}, 8);
      EXPECT_EQ(exists(), ours == theirs && ours != kPrototype ? 1U : 0U) << ours << " and " << theirs;
    }
  }
}

TEST_F(FieldTest, StructsAndUnionsStandForEachOtherWhateverTheirNames) {
  types(object_.structure("t", {}), kernel_.unionOf("u", {}));
  EXPECT_EQ(exists(), 1U);
}

TEST_F(FieldTest, EnumsOfAnyWidthStandForEachOther) {
  types(object_.enumeration("e", {{"A", 1}}), kernel_.enumeration64("e", {{"B", 1}}));
  EXPECT_EQ(exists(), 1U);
}

TEST_F(FieldTest, EnumsAndForwardDeclarationsAreCompatibleByEssentialName) {
  const auto enums = [&](const char* ours, const char* theirs) {
    scenario_ = Scenario();
    types(object_.enumeration(ours, {{"A", 1}}), kernel_.enumeration(theirs, {{"A", 1}}));
    return exists();
  };
  EXPECT_EQ(enums("e", "e"), 1U);
  EXPECT_EQ(enums("e___old", "e___new"), 1U);
  EXPECT_EQ(enums("", "e"), 1U);
  EXPECT_EQ(enums("e", ""), 1U);
  EXPECT_EQ(enums("e", "other"), 0U);
  EXPECT_EQ(enums("e", "ee"), 0U);
  const auto forwards = [&](const char* ours, const char* theirs) {
    scenario_ = Scenario();
    root_ = object_.structure("s", {{"f", object_.forward(ours), 0, 0}}, 8);
    kernel_.structure("s", {{"f", kernel_.forward(theirs, true), 0, 0}}, 8);
    return exists();
  };
  EXPECT_EQ(forwards("w", "w___2"), 1U);
  EXPECT_EQ(forwards("w", "v"), 0U);
}

TEST_F(FieldTest, FloatsStandForFloats) {
  types(object_.floating("float", 4), kernel_.floating("double", 8));
  EXPECT_EQ(exists(), 1U);
  expectResolved(scenario_.ask(Kind::fieldByteSize, root_, "0:0", 4), 8);
}

TEST_F(FieldTest, PointersStandForPointersWhateverTheyPointTo) {
  types(object_.pointer(object_.integer()), kernel_.pointer(kernel_.structure("t", {})));
  EXPECT_EQ(exists(), 1U);
}

TEST_F(FieldTest, OfArraysTheElementsAreCompared) {
  types(object_.array(object_.integer(), 2), kernel_.array(kernel_.unsignedInteger("u64", 8), 3));
  EXPECT_EQ(exists(), 1U);
  scenario_ = Scenario();
  types(object_.array(object_.integer(), 2), kernel_.array(kernel_.pointer(), 2));
  EXPECT_EQ(exists(), 0U);
  // One has more dimensions.
  scenario_ = Scenario();
  types(object_.array(object_.integer(), 2), kernel_.array(kernel_.array(kernel_.integer(), 2), 2));
  EXPECT_EQ(exists(), 0U);
}

TEST_F(FieldTest, TypedefsAndModifiersDoNotCount) {
  const TypeId ours = object_.tagged("user", object_.definedAs("t", object_.constant(object_.integer())));
  const TypeId theirs = kernel_.restricted(kernel_.isVolatile(kernel_.definedAs("u", kernel_.integer())));
  types(ours, theirs);
  expectResolved(scenario_.ask(Kind::fieldByteOffset, root_, "0:0", 0), 4);
  expectResolved(scenario_.ask(Kind::fieldSigned, root_, "0:0", 1), 1);
}

TEST_F(FieldTest, ANameOnTheKernelsSideHasNoFlavor) {
  // Flavors are of types, not of fields.
  root_ = object_.structure("s", {{"f", object_.integer()}, {"g___old", object_.integer()}});
  kernel_.structure("s", {{"f___2", kernel_.integer()}, {"g", kernel_.integer()}});
  EXPECT_EQ(exists("0:0"), 0U);
  EXPECT_EQ(exists("0:1"), 0U);
}

TEST_F(FieldTest, TheFirstFieldOfTheNameDecides) {
  // In an anonymous struct, of another kind; one that fits comes later.
  root_ = object_.structure("s", {{"f", object_.integer()}});
  const TypeId anonymous = kernel_.structure("", {{"f", kernel_.pointer()}});
  kernel_.structure("s", {{"", anonymous}, {"f", kernel_.integer()}});
  // libbpf goes on after what an anonymous struct's field did not give, and so finds the second.
  EXPECT_EQ(exists(), 1U);
  scenario_ = Scenario();
  root_ = object_.structure("s", {{"f", object_.integer()}});
  const TypeId pointer = kernel_.pointer();
  const TypeId integer = kernel_.integer();
  kernel_.structure("s", {{"f", pointer}, {"f", integer}});
  EXPECT_EQ(exists(), 0U);
}

TEST_F(FieldTest, AnonymousStructsAreSearchedAndTheirOffsetsAdded) {
  const TypeId ours = object_.integer();
  root_ = object_.structure("s", {{"f", ours}});
  const TypeId theirs = kernel_.integer();
  const TypeId decoy = kernel_.structure("", {{"x", theirs}, {"y", theirs}});
  const TypeId inner =
      kernel_.unionOf("", {{"z", theirs}, {"", kernel_.structure("", {{"w", theirs}, {"f", theirs}})}});
  kernel_.structure("s", {{"a", theirs}, {"", decoy}, {"", inner}});
  expectResolved(scenario_.ask(Kind::fieldByteOffset, root_, "0:0", 0), 4 + 8 + 4);
}

TEST_F(FieldTest, ElementsHaveOffsetAndSizeOnly) {
  types(object_.array(object_.integer(), 3), kernel_.array(kernel_.integer("long", 8), 3));
  expectResolved(scenario_.ask(Kind::fieldByteOffset, root_, "0:0:2", 8), 8 + 16);
  expectResolved(scenario_.ask(Kind::fieldByteSize, root_, "0:0:2", 4), 8);
  expectResolved(scenario_.ask(Kind::fieldExists, root_, "0:0:2", 1), 1);
  for (const Kind kind : {Kind::fieldSigned, Kind::fieldLeftShift, Kind::fieldRightShift}) {
    expectFailed(scenario_.ask(kind, root_, "0:0:2", 1), Fault::kindNeedsNamedField);
    expectFailed(scenario_.ask(kind, root_, "0", 1), Fault::kindNeedsNamedField);
  }
}

TEST_F(FieldTest, TheRootItselfHasOffsetAndSize) {
  types(object_.integer(), kernel_.integer());
  expectResolved(scenario_.ask(Kind::fieldByteOffset, root_, "0", 0), 0);
  expectResolved(scenario_.ask(Kind::fieldByteOffset, root_, "2", 8), 16);
  expectResolved(scenario_.ask(Kind::fieldByteSize, root_, "0", 4), 8);
}

TEST_F(FieldTest, SignednessIsOfIntegersAndEnums) {
  const auto isSigned = [&](auto&& make) {
    scenario_ = Scenario();
    root_ = object_.structure("s", {{"f", make(object_), 0, 0}}, 16);
    kernel_.structure("s", {{"f", make(kernel_), 0, 0}}, 16);
    // The value before is the same.
    const auto yes = scenario_.ask(Kind::fieldSigned, root_, "0:0", 1);
    const auto no = scenario_.ask(Kind::fieldSigned, root_, "0:0", 0);
    EXPECT_NE(yes.outcome() == Outcome::resolved, no.outcome() == Outcome::resolved);
    return yes.outcome() == Outcome::resolved;
  };
  EXPECT_TRUE(isSigned([](BtfMaker& maker) { return maker.integer(); }));
  EXPECT_FALSE(isSigned([](BtfMaker& maker) { return maker.unsignedInteger(); }));
  EXPECT_FALSE(isSigned([](BtfMaker& maker) { return maker.integer("bool", 1, BTF_INT_BOOL); }));
  EXPECT_TRUE(isSigned([](BtfMaker& maker) { return maker.enumeration("e", {{"A", 0}}, true); }));
  EXPECT_FALSE(isSigned([](BtfMaker& maker) { return maker.enumeration("e", {{"A", 0}}, false); }));
  EXPECT_TRUE(isSigned([](BtfMaker& maker) { return maker.enumeration64("e", {{"A", 0}}, true); }));
  EXPECT_FALSE(isSigned([](BtfMaker& maker) { return maker.enumeration64("e", {{"A", 0}}, false); }));
  EXPECT_FALSE(isSigned([](BtfMaker& maker) { return maker.pointer(); }));
  EXPECT_FALSE(isSigned([](BtfMaker& maker) { return maker.structure("t", {}); }));
  EXPECT_FALSE(isSigned([](BtfMaker& maker) { return maker.floating(); }));
}

TEST_F(FieldTest, FlexibleArraysOfTheKernelHaveAnyElement) {
  const TypeId ours = object_.integer();
  root_ = object_.structure("s", {{"f", object_.array(ours, 9)}});
  const TypeId theirs = kernel_.integer();
  kernel_.structure("s", {{"n", theirs}, {"f", kernel_.array(theirs, 0)}});
  expectResolved(scenario_.ask(Kind::fieldByteOffset, root_, "0:0:8", 32), 4 + 32);
  scenario_ = Scenario();
  root_ = object_.structure("s", {{"f", object_.array(object_.integer(), 9)}});
  const TypeId other = kernel_.integer();
  kernel_.structure("s", {{"f", kernel_.array(other, 0)}, {"n", other}});
  expectPoisoned(scenario_.ask(Kind::fieldByteOffset, root_, "0:0:8", 32), Fault::noMatch);
}

TEST_F(FieldTest, AFlexibleArrayOfAnAnonymousStructIsItsLastMember) {
  root_ = object_.structure("s", {{"f", object_.array(object_.integer(), 9)}});
  const TypeId theirs = kernel_.integer();
  const TypeId inner = kernel_.structure("", {{"n", theirs}, {"f", kernel_.array(theirs, 0)}});
  kernel_.structure("s", {{"", inner}, {"after", theirs}});
  expectResolved(scenario_.ask(Kind::fieldByteOffset, root_, "0:0:1", 4), 8);
}

TEST_F(FieldTest, AnonymousBitfieldsOfTheKernelAreNothingToSearch) {
  root_ = object_.structure("s", {{"f", object_.integer()}});
  const TypeId theirs = kernel_.integer();
  kernel_.structure("s", {{"", theirs, 4, 0}, {"", theirs, 28, 4}, {"f", theirs, 0, 32}}, 8);
  expectResolved(scenario_.ask(Kind::fieldByteOffset, root_, "0:0", 0), 4);
}

TEST_F(FieldTest, AnArrayIsNoStructAndAStructNoArray) {
  const TypeId array = object_.definedAs("t", object_.array(object_.integer(), 4));
  const TypeId structure = object_.definedAs("u", object_.structure("", {{"f", object_.integer()}}));
  kernel_.definedAs("t", kernel_.structure("", {{"f", kernel_.integer()}}));
  kernel_.definedAs("u", kernel_.array(kernel_.integer(), 4));
  expectPoisoned(scenario_.ask(Kind::fieldByteOffset, array, "0:1", 4), Fault::noMatch);
  expectPoisoned(scenario_.ask(Kind::fieldByteOffset, structure, "0:0", 0), Fault::noMatch);
}

TEST_F(FieldTest, AFieldWithoutSizeHasNone) {
  const TypeId ours = object_.pointer();
  root_ = object_.structure("s", {{"f", object_.array(object_.forward("w"), 2), 0, 0}, {"p", ours, 0, 64}}, 16);
  kernel_.structure("s", {{"f", kernel_.array(kernel_.forward("w"), 2), 0, 0}, {"p", kernel_.pointer(), 0, 64}}, 16);
  for (const Kind kind : {Kind::fieldByteOffset, Kind::fieldByteSize, Kind::fieldLeftShift}) {
    expectFailed(scenario_.ask(kind, root_, "0:0", 0), Fault::sizeUnknown);
  }
  expectResolved(scenario_.ask(Kind::fieldExists, root_, "0:0", 1), 1);
  expectResolved(scenario_.ask(Kind::fieldByteOffset, root_, "0:1", 8), 8);
}

TEST_F(FieldTest, WhatNoPointerSizeIsKnownOfHasThisMachines) {
  types(object_.pointer(), kernel_.pointer());
  expectResolved(scenario_.ask(Kind::fieldByteSize, root_, "0:0", 8), sizeof(void*));
}

} // namespace
} // namespace btfd::core
