// The kinds about whole types but type_matches: local and target id, existence, size; and what "compatible" means.
#include "scenario.h"

namespace btfd::core {
namespace {

class TypeQuestionTest : public ScenarioTest {
 protected:
  std::uint64_t exists(TypeId type) {
    const auto result = scenario_.ask(Kind::typeExists, type, "0", 1);
    EXPECT_EQ(result.outcome(), Outcome::resolved) << "fault " << static_cast<int>(result.fault());
    return result.value();
  }

  /// Whether typedefs of these types stand for each other.
  template <typename Ours, typename Theirs>
  bool compatible(Ours&& ours, Theirs&& theirs) {
    scenario_ = Scenario();
    const TypeId root = object_.definedAs("t", ours(object_));
    kernel_.definedAs("t", theirs(kernel_));
    return exists(root) == 1;
  }

  template <typename Make>
  bool compatible(Make&& make) {
    return compatible(make, make);
  }
};

TypeId integerOf(BtfMaker& maker) {
  return maker.integer();
}

TypeId pointerOf(BtfMaker& maker) {
  return maker.pointer(maker.integer());
}

TEST_F(TypeQuestionTest, EachKindHasItsAnswer) {
  const TypeId ours = object_.structure("s", {{"a", object_.integer()}});
  kernel_.integer();
  const TypeId theirs = kernel_.structure("s", {}, 24);
  expectResolved(scenario_.ask(Kind::typeIdLocal, ours, "0", 77), ours);
  expectResolved(scenario_.ask(Kind::typeIdTarget, ours, "0", 77), theirs);
  expectResolved(scenario_.ask(Kind::typeExists, ours, "0", 1), 1);
  expectResolved(scenario_.ask(Kind::typeSize, ours, "0", 4), 24);
}

TEST_F(TypeQuestionTest, WhatIsMissingIsZeroAndNoPoison) {
  const TypeId ours = object_.structure("s", {{"a", object_.integer()}});
  expectResolved(scenario_.ask(Kind::typeIdTarget, ours, "0", 77), 0);
  expectResolved(scenario_.ask(Kind::typeExists, ours, "0", 1), 0);
  expectResolved(scenario_.ask(Kind::typeSize, ours, "0", 4), 0);
  expectResolved(scenario_.ask(Kind::typeMatches, ours, "0", 1), 0);
  expectResolved(scenario_.ask(Kind::typeIdLocal, ours, "0", 1), ours);
}

TEST_F(TypeQuestionTest, ATypeWithoutSizeHasNone) {
  const TypeId ours = object_.definedAs("f", object_.prototype(0, {}));
  kernel_.definedAs("f", kernel_.prototype(0, {}));
  expectFailed(scenario_.ask(Kind::typeSize, ours, "0", 4), Fault::sizeUnknown);
  const TypeId void_ = object_.definedAs("v", 0);
  kernel_.definedAs("v", 0);
  expectFailed(scenario_.ask(Kind::typeSize, void_, "0", 4), Fault::sizeUnknown);
}

TEST_F(TypeQuestionTest, IdsGoIntoBothHalvesOfAWideLoad) {
  const TypeId ours = object_.structure("s", {});
  kernel_.integer();
  const TypeId theirs = kernel_.structure("s", {});
  EXPECT_EQ(scenario_.relocate(Kind::typeIdTarget, ours, "0", wide(0xffffffffffffffffU)).code, wide(theirs));
  EXPECT_EQ(scenario_.relocate(Kind::typeIdLocal, ours, "0", wide(0xffffffffffffffffU)).code, wide(ours));
}

TEST_F(TypeQuestionTest, MembersOfStructsDoNotCount) {
  EXPECT_TRUE(compatible([](BtfMaker& maker) { return maker.structure("s", {{"a", maker.integer()}}); },
                         [](BtfMaker& maker) { return maker.structure("u", {{"b", maker.pointer()}}); }));
  EXPECT_FALSE(compatible([](BtfMaker& maker) { return maker.structure("s", {}); },
                          [](BtfMaker& maker) { return maker.unionOf("s", {}); }));
}

TEST_F(TypeQuestionTest, EachKindIsOnlyCompatibleWithItself) {
  using Make = TypeId (*)(BtfMaker&);
  const std::vector<Make> makers = {
      [](BtfMaker&) { return TypeId{0}; },
      [](BtfMaker& maker) { return maker.integer(); },
      [](BtfMaker& maker) { return maker.pointer(); },
      [](BtfMaker& maker) { return maker.array(maker.integer(), 3); },
      [](BtfMaker& maker) { return maker.structure("s", {}); },
      [](BtfMaker& maker) { return maker.unionOf("s", {}); },
      [](BtfMaker& maker) { return maker.enumeration("s", {}); },
      [](BtfMaker& maker) { return maker.forward("s"); },
      [](BtfMaker& maker) { return maker.prototype(0, {}); },
  };
  for (std::size_t ours = 0; ours < makers.size(); ++ours) {
    for (std::size_t theirs = 0; theirs < makers.size(); ++theirs) {
      EXPECT_EQ(compatible(makers[ours], makers[theirs]), ours == theirs) << ours << " and " << theirs;
    }
  }
}

TEST_F(TypeQuestionTest, FloatsAreNotKnownToIt) {
  // As libbpf has it, though a field that is a float is one that stands for another.
  EXPECT_FALSE(compatible([](BtfMaker& maker) { return maker.floating(); }));
}

TEST_F(TypeQuestionTest, EnumsOfAnyWidthAreCompatible) {
  EXPECT_TRUE(compatible([](BtfMaker& maker) { return maker.enumeration("e", {{"A", 1}}); },
                         [](BtfMaker& maker) { return maker.enumeration64("f", {}); }));
}

TEST_F(TypeQuestionTest, IntegersOfEachSizeAndSignAreCompatible) {
  EXPECT_TRUE(compatible(integerOf, [](BtfMaker& maker) { return maker.integer("u8", 1, 0); }));
}

TEST_F(TypeQuestionTest, IntegersThatAreBitfieldsAreNot) {
  const auto bitfield = [](BtfMaker& maker) {
    const TypeId id = maker.integer();
    // INT's data: encoding, offset, bits (linux/btf.h); compilers no longer write an offset.
    *reinterpret_cast<std::uint32_t*>(&maker.type(id) + 1) |= 3U << 16U; // NOLINT
    return id;
  };
  EXPECT_FALSE(compatible(integerOf, bitfield));
  EXPECT_FALSE(compatible(bitfield, integerOf));
}

TEST_F(TypeQuestionTest, WhatPointersPointToIsCompared) {
  EXPECT_TRUE(compatible(pointerOf));
  EXPECT_FALSE(compatible(pointerOf, [](BtfMaker& maker) { return maker.pointer(maker.structure("s", {})); }));
  EXPECT_FALSE(compatible(pointerOf, [](BtfMaker& maker) { return maker.pointer(); }));
}

TEST_F(TypeQuestionTest, TheNumberOfElementsDoesNotCountButTheirTypeDoes) {
  EXPECT_TRUE(compatible([](BtfMaker& maker) { return maker.array(maker.integer(), 3); },
                         [](BtfMaker& maker) { return maker.array(maker.integer(), 4); }));
  EXPECT_FALSE(compatible([](BtfMaker& maker) { return maker.array(maker.integer(), 3); },
                          [](BtfMaker& maker) { return maker.array(maker.pointer(), 3); }));
}

TEST_F(TypeQuestionTest, FunctionsAreComparedParameterByParameter) {
  const auto function = [](BtfMaker& maker) {
    const TypeId integer = maker.integer();
    return maker.pointer(maker.prototype(integer, {{"a", integer}, {"b", maker.pointer(integer)}}));
  };
  EXPECT_TRUE(compatible(function));
  EXPECT_FALSE(compatible(function, [](BtfMaker& maker) {
    return maker.pointer(maker.prototype(maker.integer(), {{"a", maker.integer()}}));
  }));
  EXPECT_FALSE(compatible(function, [](BtfMaker& maker) {
    const TypeId integer = maker.integer();
    return maker.pointer(maker.prototype(integer, {{"a", integer}, {"b", integer}}));
  }));
  EXPECT_FALSE(compatible(function, [](BtfMaker& maker) {
    const TypeId integer = maker.integer();
    return maker.pointer(maker.prototype(0, {{"a", integer}, {"b", maker.pointer(integer)}}));
  }));
  // Names of parameters are of no importance.
  EXPECT_TRUE(compatible(function, [](BtfMaker& maker) {
    const TypeId integer = maker.integer();
    return maker.pointer(maker.prototype(integer, {{"x", integer}, {"", maker.pointer(integer)}}));
  }));
}

TEST_F(TypeQuestionTest, TypedefsAndModifiersDoNotCount) {
  EXPECT_TRUE(compatible(pointerOf, [](BtfMaker& maker) {
    return maker.constant(maker.definedAs("p", maker.pointer(maker.isVolatile(maker.integer()))));
  }));
}

TEST_F(TypeQuestionTest, SizesAreOfTheWholeType) {
  const TypeId ours = object_.definedAs("t", object_.array(object_.integer(), 3));
  kernel_.definedAs("t", kernel_.array(kernel_.array(kernel_.integer(), 5), 2));
  // Elements of another kind: int is no array.
  expectResolved(scenario_.ask(Kind::typeSize, ours, "0", 12), 0);
  scenario_ = Scenario();
  const TypeId again = object_.definedAs("t", object_.array(object_.integer(), 3));
  kernel_.definedAs("t", kernel_.array(kernel_.integer("long", 8), 5));
  expectResolved(scenario_.ask(Kind::typeSize, again, "0", 12), 40);
}

} // namespace
} // namespace btfd::core
