// bpf_core_type_matches: whether the kernel's type has all that the object's has.
#include "scenario.h"

namespace btfd::core {
namespace {

using Make = TypeId (*)(BtfMaker&);

class TypeMatchTest : public testing::Test {
 protected:
  /// Whether typedefs of these types match.
  static bool match(Make ours, Make theirs) {
    Scenario scenario;
    const TypeId root = scenario.object.definedAs("t", ours(scenario.object));
    scenario.kernel.definedAs("t", theirs(scenario.kernel));
    const auto result = scenario.ask(Kind::typeMatches, root, "0", 1);
    EXPECT_EQ(result.outcome(), Outcome::resolved) << "fault " << static_cast<int>(result.fault());
    return result.value() == 1;
  }

  static bool match(Make make) { return match(make, make); }
};

TEST_F(TypeMatchTest, IntegersMatchBySizeAndSign) {
  const Make integer = [](BtfMaker& maker) { return maker.integer(); };
  EXPECT_TRUE(match(integer));
  EXPECT_FALSE(match(integer, [](BtfMaker& maker) { return maker.integer("int", 8); }));
  EXPECT_FALSE(match(integer, [](BtfMaker& maker) { return maker.integer("int", 4, 0); }));
  EXPECT_FALSE(match(integer, [](BtfMaker& maker) { return maker.integer("s32", 4); }));
  EXPECT_TRUE(match([](BtfMaker& maker) { return maker.integer("b", 1, BTF_INT_BOOL); },
                    [](BtfMaker& maker) { return maker.integer("b", 1, 0); }));
}

TEST_F(TypeMatchTest, NamesMatchButForFlavors) {
  EXPECT_TRUE(match([](BtfMaker& maker) { return maker.structure("s___old", {}); },
                    [](BtfMaker& maker) { return maker.structure("s", {}); }));
  EXPECT_FALSE(match([](BtfMaker& maker) { return maker.structure("s", {}); },
                     [](BtfMaker& maker) { return maker.structure("z", {}); }));
  EXPECT_TRUE(match([](BtfMaker& maker) { return maker.structure("", {}); }));
  EXPECT_FALSE(match([](BtfMaker& maker) { return maker.structure("", {}); },
                     [](BtfMaker& maker) { return maker.structure("s", {}); }));
  EXPECT_FALSE(match([](BtfMaker& maker) { return maker.structure("s", {}); },
                     [](BtfMaker& maker) { return maker.structure("", {}); }));
}

TEST_F(TypeMatchTest, TheKernelMayHaveMoreMembersInAnotherOrder) {
  const Make few = [](BtfMaker& maker) {
    const TypeId integer = maker.integer();
    return maker.structure("s", {{"a", integer}, {"b", integer}});
  };
  const Make many = [](BtfMaker& maker) {
    const TypeId integer = maker.integer();
    return maker.structure("s", {{"c", integer}, {"b", integer}, {"a", integer}});
  };
  EXPECT_TRUE(match(few, many));
  EXPECT_FALSE(match(many, few));
}

TEST_F(TypeMatchTest, AsManyMembersOfOtherNamesDoNot) {
  EXPECT_FALSE(match([](BtfMaker& maker) { return maker.structure("s", {{"a", maker.integer()}}); },
                     [](BtfMaker& maker) { return maker.structure("s", {{"b", maker.integer()}}); }));
}

TEST_F(TypeMatchTest, MembersMatchByTheirTypes) {
  const Make ours = [](BtfMaker& maker) { return maker.structure("s", {{"a", maker.integer()}}); };
  EXPECT_FALSE(match(ours, [](BtfMaker& maker) { return maker.structure("s", {{"a", maker.integer("int", 8)}}); }));
  EXPECT_TRUE(match(ours, [](BtfMaker& maker) {
    return maker.structure("s", {{"a", maker.constant(maker.definedAs("x", maker.integer()))}});
  }));
}

TEST_F(TypeMatchTest, StructsByValueAreComparedInDepth) {
  const Make ours = [](BtfMaker& maker) {
    return maker.structure("s", {{"in", maker.structure("in", {{"a", maker.integer()}})}});
  };
  EXPECT_TRUE(match(ours));
  EXPECT_FALSE(match(ours, [](BtfMaker& maker) {
    return maker.structure("s", {{"in", maker.structure("in", {{"b", maker.integer()}})}});
  }));
}

TEST_F(TypeMatchTest, BehindPointersOnlyNameAndKindCount) {
  const Make ours = [](BtfMaker& maker) {
    return maker.structure("s", {{"p", maker.pointer(maker.structure("in", {{"a", maker.integer()}}))}});
  };
  const Make otherMembers = [](BtfMaker& maker) {
    return maker.structure("s", {{"p", maker.pointer(maker.structure("in", {{"b", maker.pointer()}}))}});
  };
  EXPECT_TRUE(match(ours, otherMembers));
  EXPECT_FALSE(match(ours, [](BtfMaker& maker) {
    return maker.structure("s", {{"p", maker.pointer(maker.structure("other", {{"a", maker.integer()}}))}});
  }));
  EXPECT_FALSE(match(ours, [](BtfMaker& maker) {
    return maker.structure("s", {{"p", maker.pointer(maker.unionOf("in", {{"a", maker.integer()}}))}});
  }));
}

TEST_F(TypeMatchTest, BehindPointersAForwardDeclarationStandsForItsStructOrUnion) {
  const Make structure = [](BtfMaker& maker) { return maker.pointer(maker.structure("s", {})); };
  const Make unionOf = [](BtfMaker& maker) { return maker.pointer(maker.unionOf("s", {})); };
  const Make ofStruct = [](BtfMaker& maker) { return maker.pointer(maker.forward("s")); };
  const Make ofUnion = [](BtfMaker& maker) { return maker.pointer(maker.forward("s", true)); };
  EXPECT_TRUE(match(structure, ofStruct));
  EXPECT_TRUE(match(ofStruct, structure));
  EXPECT_TRUE(match(unionOf, ofUnion));
  EXPECT_TRUE(match(ofUnion, unionOf));
  EXPECT_FALSE(match(structure, ofUnion));
  EXPECT_FALSE(match(ofUnion, structure));
  EXPECT_FALSE(match(unionOf, ofStruct));
  EXPECT_FALSE(match(ofStruct, unionOf));
  EXPECT_TRUE(match(ofStruct));
  EXPECT_FALSE(match(ofStruct, ofUnion));
}

TEST_F(TypeMatchTest, ElsewhereItStandsForItselfOnly) {
  const Make structure = [](BtfMaker& maker) { return maker.structure("s", {}); };
  const Make forward = [](BtfMaker& maker) { return maker.forward("s"); };
  const Make ofUnion = [](BtfMaker& maker) { return maker.forward("s", true); };
  EXPECT_FALSE(match(structure, forward));
  EXPECT_FALSE(match(forward, structure));
  EXPECT_TRUE(match(forward));
  EXPECT_FALSE(match(forward, ofUnion));
}

TEST_F(TypeMatchTest, ArraysMatchByLengthAndElement) {
  const Make ours = [](BtfMaker& maker) { return maker.array(maker.integer(), 3); };
  EXPECT_TRUE(match(ours));
  EXPECT_FALSE(match(ours, [](BtfMaker& maker) { return maker.array(maker.integer(), 4); }));
  EXPECT_FALSE(match(ours, [](BtfMaker& maker) { return maker.array(maker.integer("int", 8), 3); }));
  EXPECT_FALSE(match(ours, [](BtfMaker& maker) { return maker.pointer(maker.integer()); }));
}

TEST_F(TypeMatchTest, EnumsMatchByNamesAndSizeWhateverTheValues) {
  const Make ours = [](BtfMaker& maker) { return maker.enumeration("e", {{"A", 1}, {"B", 2}}); };
  EXPECT_TRUE(
      match(ours, [](BtfMaker& maker) { return maker.enumeration("e", {{"C", 1}, {"B", 7}, {"A", 9}}, true); }));
  EXPECT_FALSE(match(ours, [](BtfMaker& maker) { return maker.enumeration("e", {{"A", 1}, {"C", 2}}); }));
  EXPECT_FALSE(match(ours, [](BtfMaker& maker) { return maker.enumeration("e", {{"A", 1}}); }));
  EXPECT_FALSE(match(ours, [](BtfMaker& maker) { return maker.enumeration64("e", {{"A", 1}, {"B", 2}}); }));
  EXPECT_FALSE(match(ours, [](BtfMaker& maker) { return maker.integer("e"); }));
  EXPECT_TRUE(match([](BtfMaker& maker) { return maker.enumeration64("e", {{"A", 1}}); },
                    [](BtfMaker& maker) { return maker.enumeration("e", {{"A", 1}}, false, 8); }));
  EXPECT_TRUE(match([](BtfMaker& maker) { return maker.enumeration("e", {{"A___old", 1}}); },
                    [](BtfMaker& maker) { return maker.enumeration("e", {{"A", 1}}); }));
}

TEST_F(TypeMatchTest, FunctionsMatchByParametersAndResult) {
  const Make ours = [](BtfMaker& maker) {
    const TypeId integer = maker.integer();
    return maker.pointer(maker.prototype(integer, {{"a", maker.pointer(maker.structure("s", {}))}}));
  };
  EXPECT_TRUE(match(ours));
  EXPECT_TRUE(match(ours, [](BtfMaker& maker) {
    return maker.pointer(maker.prototype(maker.integer(), {{"other", maker.pointer(maker.forward("s"))}}));
  }));
  EXPECT_FALSE(match(ours, [](BtfMaker& maker) {
    return maker.pointer(maker.prototype(0, {{"a", maker.pointer(maker.structure("s", {}))}}));
  }));
  EXPECT_FALSE(match(ours, [](BtfMaker& maker) {
    return maker.pointer(maker.prototype(maker.integer(), {{"a", maker.pointer(maker.structure("z", {}))}}));
  }));
  EXPECT_FALSE(match(ours, [](BtfMaker& maker) { return maker.pointer(maker.prototype(maker.integer(), {})); }));
}

TEST_F(TypeMatchTest, VoidMatchesVoid) {
  EXPECT_TRUE(match([](BtfMaker& maker) { return maker.pointer(); }));
  EXPECT_FALSE(match([](BtfMaker& maker) { return maker.pointer(); },
                     [](BtfMaker& maker) { return maker.pointer(maker.structure("", {})); }));
}

TEST_F(TypeMatchTest, FloatsMatchNothing) {
  // libbpf knows no rule for them.
  EXPECT_FALSE(match([](BtfMaker& maker) { return maker.floating(); }));
}

TEST_F(TypeMatchTest, OneOfSeveralMembersOfTheNameIsEnough) {
  const Make ours = [](BtfMaker& maker) { return maker.structure("s", {{"", maker.integer()}}); };
  EXPECT_TRUE(match(ours, [](BtfMaker& maker) {
    const TypeId pointer = maker.pointer();
    return maker.structure("s", {{"", pointer}, {"", maker.integer()}});
  }));
}

TEST_F(TypeMatchTest, TypesThatReferToThemselvesMatch) {
  const Make list = [](BtfMaker& maker) {
    const TypeId pointer = maker.pointer(maker.next(1));
    return maker.structure("list_head", {{"next", pointer}, {"prev", pointer}});
  };
  EXPECT_TRUE(match(list));
}

} // namespace
} // namespace btfd::core
