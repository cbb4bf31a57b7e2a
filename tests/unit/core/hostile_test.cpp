// Types, accesses and records that no compiler writes: each ends at once, in an error or a sound result.
#include "scenario.h"

#include <bpf/libbpf.h>

#include <functional>
#include <string>

namespace btfd::core {
namespace {

using Make = std::function<TypeId(BtfMaker&)>;

constexpr std::array<Kind, 13> kKinds = {
    Kind::fieldByteOffset,  Kind::fieldByteSize,   Kind::fieldExists,  Kind::fieldSigned, Kind::fieldLeftShift,
    Kind::fieldRightShift,  Kind::typeIdLocal,     Kind::typeIdTarget, Kind::typeExists,  Kind::typeSize,
    Kind::enumeratorExists, Kind::enumeratorValue, Kind::typeMatches};

/// A type that leads to itself, and what it is made of.
struct Cycle {
  const char* name;
  Make make;
};

void PrintTo(const Cycle& cycle, std::ostream* out) { // NOLINT: googletest's name
  *out << cycle.name;
}

const std::vector<Cycle> kCycles = {
    {"typedef", [](BtfMaker& maker) { return maker.definedAs("t", maker.next()); }},
    {"typedefs", [](BtfMaker& maker) { return maker.definedAs("t", maker.definedAs("u", maker.next(1))); }},
    {"const", [](BtfMaker& maker) { return maker.definedAs("t", maker.constant(maker.next())); }},
    {"volatile", [](BtfMaker& maker) { return maker.definedAs("t", maker.isVolatile(maker.next())); }},
    {"restrict", [](BtfMaker& maker) { return maker.definedAs("t", maker.restricted(maker.next())); }},
    {"type_tag", [](BtfMaker& maker) { return maker.definedAs("t", maker.tagged("a", maker.next())); }},
    {"pointer", [](BtfMaker& maker) { return maker.definedAs("t", maker.pointer(maker.next())); }},
    {"array", [](BtfMaker& maker) { return maker.definedAs("t", maker.array(maker.next(), 1)); }},
    {"large_array", [](BtfMaker& maker) { return maker.definedAs("t", maker.array(maker.next(), 0xffffffff)); }},
    {"struct", [](BtfMaker& maker) { return maker.structure("t", {{"f", maker.next(), 0, 0}}, 4); }},
    {"anonymous_struct",
     [](BtfMaker& maker) {
       const TypeId inner = maker.structure("", {{"", maker.next(), 0, 0}, {"", maker.next(), 0, 0}}, 4);
       return maker.structure("t", {{"", inner, 0, 0}, {"f", inner, 0, 0}}, 4);
     }},
    {"struct_and_array",
     [](BtfMaker& maker) {
       return maker.structure("t", {{"f", maker.array(maker.next(1), 2), 0, 0}, {"g", maker.next(), 0, 0}}, 4);
     }},
    {"prototype",
     [](BtfMaker& maker) {
       const TypeId self = maker.next();
       return maker.definedAs("t", maker.prototype(self, {{"a", self}, {"b", self}}));
     }},
    {"prototype_of_pointers",
     [](BtfMaker& maker) {
       const TypeId pointer = maker.pointer(maker.next(1));
       return maker.definedAs("t", maker.prototype(pointer, {{"a", pointer}, {"b", pointer}}));
     }},
    {"decl_tag", [](BtfMaker& maker) { return maker.declarationTag("t", maker.next()); }},
    {"variable", [](BtfMaker& maker) { return maker.variable("t", maker.next()); }},
};

TypeId plain(BtfMaker& maker) {
  return maker.structure("t", {{"f", maker.integer()}});
}

class CycleTest : public testing::TestWithParam<Cycle> {
 protected:
  static void askEverything(const Make& ours, const Make& theirs) {
    Scenario scenario;
    const TypeId root = ours(scenario.object);
    theirs(scenario.kernel);
    for (const Kind kind : kKinds) {
      for (const char* access : {"0", "1", "0:0", "0:0:0", "0:1:1:0:1", "0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0"}) {
        const auto result = scenario.relocate(kind, root, access, move(0));
        // Only what does not look at the type's shape can have an answer here that is no "no".
        if (result.outcome() == Outcome::resolved && kind == Kind::typeSize) {
          EXPECT_LE(result.value(), 8U) << static_cast<int>(kind) << " " << access;
        }
      }
    }
  }
};

TEST_P(CycleTest, OfTheObjectEnds) {
  askEverything(GetParam().make, plain);
}

TEST_P(CycleTest, OfTheKernelEnds) {
  askEverything(plain, GetParam().make);
}

TEST_P(CycleTest, OfBothEnds) {
  askEverything(GetParam().make, GetParam().make);
}

INSTANTIATE_TEST_SUITE_P(Hostile, CycleTest, testing::ValuesIn(kCycles),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Hostile, ACycleOfModifiersIsAnError) {
  Scenario scenario;
  const TypeId root = scenario.object.definedAs("t", scenario.object.constant(scenario.object.next()));
  scenario.kernel.definedAs("t", scenario.kernel.integer());
  expectFailed(scenario.ask(Kind::fieldByteOffset, root, "0", 0), Fault::modifierChain);
  expectFailed(scenario.ask(Kind::typeExists, root, "0", 1), Fault::modifierChain);
  expectFailed(scenario.ask(Kind::typeMatches, root, "0", 1), Fault::modifierChain);
}

TEST(Hostile, AStructWithinItselfDoesNotMatchForever) {
  const auto make = [](BtfMaker& maker) {
    return maker.structure("t", {{"f", maker.next(), 0, 0}, {"g", maker.next(), 0, 0}}, 4);
  };
  Scenario scenario;
  const TypeId root = make(scenario.object);
  make(scenario.kernel);
  expectFailed(scenario.ask(Kind::typeMatches, root, "0", 1), Fault::nestedTooDeep);
  expectResolved(scenario.ask(Kind::typeExists, root, "0", 1), 1);
}

/// `levels` structs, each with two anonymous members of the next: 2^levels ways to the innermost.
TypeId doubled(BtfMaker& maker, int levels, bool throughTypedefs) {
  TypeId type = maker.structure("", {{"deepest", maker.integer()}});
  for (int level = 0; level < levels; ++level) {
    const TypeId first = throughTypedefs ? maker.definedAs("a", type) : type;
    const TypeId second = throughTypedefs ? maker.definedAs("b", type) : type;
    type = maker.structure(level + 1 == levels ? "t" : "", {{"", first, 0, 0}, {"", second, 0, 32}}, 8);
  }
  return type;
}

TEST(Hostile, AnonymousMembersInPowersOfTwoAreSearchedOnce) {
  for (const bool throughTypedefs : {false, true}) {
    Scenario scenario;
    const TypeId root = scenario.object.structure("t", {{"absent", scenario.object.integer()}});
    doubled(scenario.kernel, 30, throughTypedefs);
    expectPoisoned(scenario.ask(Kind::fieldByteOffset, root, "0:0", 0), Fault::noMatch);
    const TypeId other = scenario.object.structure("t", {{"deepest", scenario.object.integer()}});
    expectResolved(scenario.ask(Kind::fieldByteOffset, other, "0:0", 0), 0);
  }
}

TEST(Hostile, AnonymousMembersDeeperThanAnAccessAreAnError) {
  Scenario scenario;
  const TypeId root = scenario.object.structure("t", {{"absent", scenario.object.integer()}});
  doubled(scenario.kernel, 70, false);
  expectFailed(scenario.ask(Kind::fieldByteOffset, root, "0:0", 0), Fault::nestedTooDeep);
}

TEST(Hostile, StructsInPowersOfTwoMatchOnce) {
  const auto make = [](BtfMaker& maker) {
    TypeId type = maker.integer();
    for (int level = 0; level < 28; ++level) {
      type = maker.structure("t", {{"a", type, 0, 0}, {"b", type, 0, 0}, {"c", type, 0, 0}}, 8);
    }
    return type;
  };
  Scenario scenario;
  const TypeId root = make(scenario.object);
  make(scenario.kernel);
  scenario.relocate(Kind::typeMatches, root, "0", move(1));
}

TEST(Hostile, PrototypesInPowersOfTwoAreComparedOnce) {
  const auto make = [](BtfMaker& maker) {
    TypeId type = maker.integer();
    for (int level = 0; level < 28; ++level) {
      type = maker.pointer(maker.prototype(type, {{"a", type}, {"b", type}, {"c", type}}));
    }
    return maker.definedAs("t", type);
  };
  Scenario scenario;
  const TypeId root = make(scenario.object);
  make(scenario.kernel);
  for (const Kind kind : {Kind::typeExists, Kind::typeMatches, Kind::typeSize}) {
    scenario.relocate(kind, root, "0", move(1));
  }
}

TEST(Hostile, AChainOf200000ModifiersIsAnError) {
  const auto make = [](BtfMaker& maker) {
    TypeId type = maker.integer();
    for (int i = 0; i < 100'000; ++i) {
      type = maker.constant(maker.definedAs("x", type));
    }
    return maker.structure("t", {{"f", type, 0, 0}}, 4);
  };
  Scenario scenario;
  const TypeId root = make(scenario.object);
  scenario.kernel.structure("t", {{"f", scenario.kernel.integer()}});
  expectFailed(scenario.ask(Kind::fieldByteOffset, root, "0:0", 0), Fault::modifierChain);
  Scenario other;
  const TypeId ours = other.object.structure("t", {{"f", other.object.integer()}});
  make(other.kernel);
  expectFailed(other.ask(Kind::fieldByteOffset, ours, "0:0", 0), Fault::modifierChain);
}

/// 120 modifiers and 100 dimensions are within the bounds; 100,000 questions about them are not.
TEST(Hostile, LongChainsArePaidForStepByStep) {
  const auto make = [](BtfMaker& maker) {
    TypeId type = maker.integer();
    for (int dimension = 0; dimension < 100; ++dimension) {
      for (int i = 0; i < 120; ++i) {
        type = maker.constant(type);
      }
      type = maker.array(type, 1);
    }
    return maker.structure("t", {{"f", type, 0, 0}}, 4);
  };
  Scenario scenario;
  const TypeId root = make(scenario.object);
  make(scenario.kernel);
  std::vector<std::string> accesses;
  for (int i = 0; i < 2'000; ++i) {
    accesses.push_back(std::to_string(i) + ":0");
  }
  std::vector<Question> questions;
  for (const std::string& access : accesses) {
    for (const Kind kind : {Kind::fieldByteOffset, Kind::fieldByteSize, Kind::fieldExists}) {
      questions.push_back({.kind = kind, .type = root, .access = access.c_str(), .code = {move(0)}});
    }
  }
  const auto results = scenario.relocateAll(questions);
  EXPECT_EQ(results.back().fault(), Fault::tooMuchWork);
}

TEST(Hostile, IdenticalCandidatesByTheThousandAreAsGoodAsOne) {
  Scenario scenario;
  const TypeId ours = scenario.object.integer();
  std::vector<Member> members;
  const std::array<const char*, 8> names = {"a", "b", "c", "d", "e", "f", "g", "h"};
  for (const char* name : names) {
    members.push_back({name, ours});
  }
  const TypeId root = scenario.object.structure("t", members);
  const TypeId theirs = scenario.kernel.integer();
  for (Member& each : members) {
    each.type = theirs;
  }
  std::ranges::reverse(members);
  for (int i = 0; i < 5000; ++i) {
    scenario.kernel.structure("t", members);
  }
  std::vector<Question> questions;
  const std::array<const char*, 8> accesses = {"0:0", "0:1", "0:2", "0:3", "0:4", "0:5", "0:6", "0:7"};
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    questions.push_back({.kind = Kind::fieldByteOffset,
                         .type = root,
                         .access = accesses.at(i),
                         .code = {move(static_cast<std::int32_t>(i * 4))}});
  }
  const auto results = scenario.relocateAll(questions);
  for (std::size_t i = 0; i < results.size(); ++i) {
    expectResolved(results[i], 28 - i * 4);
    EXPECT_EQ(results[i].relocation.candidates, 5000U);
  }
}

/// n types of the object and n of the kernel with one name are n^2 candidates.
TEST(Hostile, CandidatesOfManyTypesOfOneNameArePaidFor) {
  Scenario scenario;
  constexpr int kTypes = 20'000;
  std::vector<Question> questions;
  const TypeId integer = scenario.object.integer();
  for (int i = 0; i < kTypes; ++i) {
    questions.push_back({.kind = Kind::fieldExists,
                         .type = scenario.object.structure("t", {{"f", integer}}),
                         .access = "0:0",
                         .code = {move(1)}});
    scenario.kernel.structure("t", {}, 4);
  }
  const auto results = scenario.relocateAll(questions);
  EXPECT_EQ(results.back().fault(), Fault::tooMuchWork);
}

TEST(Hostile, TypesOfAnotherKindArePaidForToo) {
  Scenario scenario;
  std::vector<Question> questions;
  for (int i = 0; i < 20'000; ++i) {
    questions.push_back(
        {.kind = Kind::typeExists, .type = scenario.object.structure("t", {}, 4), .access = "0", .code = {move(1)}});
    scenario.kernel.forward("t");
  }
  const auto results = scenario.relocateAll(questions);
  EXPECT_EQ(results.back().fault(), Fault::tooMuchWork);
}

/// Long names that differ at their end only.
TEST(Hostile, LongNamesArePaidFor) {
  Scenario scenario;
  const std::string name(1U << 20U, 'x');
  const TypeId ours = scenario.object.integer();
  constexpr std::size_t kMembers = 60'000;
  const std::string local = name + "local";
  const std::string theirs = name + "theirs";
  const TypeId root = scenario.object.structure("t", {{local.c_str(), ours}});
  scenario.kernel.integer();
  const TypeId large = scenario.kernel.structure("t", {}, 4);
  for (std::size_t i = 0; i < kMembers; ++i) {
    btf__add_field(scenario.kernel.get(), i == 0 ? theirs.c_str() : "", 1, 0, 0);
  }
  auto* fields = btf_members(&scenario.kernel.type(large));
  for (std::size_t i = 1; i < kMembers; ++i) {
    fields[i].name_off = fields[0].name_off;
  }
  EXPECT_EQ(scenario.ask(Kind::fieldByteOffset, root, "0:0", 0).fault(), Fault::tooMuchWork);
  EXPECT_EQ(scenario.ask(Kind::fieldExists, root, "0:0", 1).fault(), Fault::tooMuchWork);
}

TEST(Hostile, LongNamesOfEnumeratorsArePaidFor) {
  Scenario scenario;
  const std::string name(1U << 20U, 'x');
  const auto make = [&](BtfMaker& maker, const char* last) {
    const TypeId id = maker.enumeration("t", {{(name + last).c_str(), 1}});
    for (int i = 1; i < 60'000; ++i) {
      btf__add_enum_value(maker.get(), "x", 1);
    }
    auto* values = btf_enum(&maker.type(id));
    for (int i = 1; i < 60'000; ++i) {
      values[i].name_off = values[0].name_off; // NOLINT: as many as were added
    }
    return id;
  };
  const TypeId root = make(scenario.object, "local");
  make(scenario.kernel, "theirs");
  for (const Kind kind : {Kind::enumeratorValue, Kind::enumeratorExists, Kind::typeMatches}) {
    EXPECT_EQ(scenario.ask(kind, root, "0", 1).fault(), Fault::tooMuchWork) << static_cast<int>(kind);
  }
}

/// Members without names match each other by their types only: each pair of them is one to compare and to remember.
TEST(Hostile, PairsOfTypesAreRememberedWithinBounds) {
  Scenario scenario;
  std::vector<Member> ours;
  std::vector<Member> theirs;
  constexpr int kMembers = 12'000;
  for (int i = 0; i < kMembers; ++i) {
    ours.push_back({"", scenario.object.constant(scenario.object.structure("a", {}, 4)), 0, 0});
    const char* name = i + 1 == kMembers ? "a" : "b";
    theirs.push_back({"", scenario.kernel.constant(scenario.kernel.structure(name, {}, 4)), 0, 0});
  }
  const TypeId root = scenario.object.structure("t", ours, 8);
  scenario.kernel.structure("t", theirs, 8);
  EXPECT_EQ(scenario.ask(Kind::typeMatches, root, "0", 1).fault(), Fault::tooMuchWork);
}

/// The engine finds equal questions by a hash that a client can compute, too.
TEST(Hostile, RecordsWhoseHashesCollideAreNotCompared) {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15U;
  std::uint64_t inverse = 1;
  for (int i = 0; i < 6; ++i) {
    inverse *= 2 - kFactor * inverse; // Newton: twice as many bits each time
  }
  ASSERT_EQ(kFactor * inverse, 1U);
  Records records;
  records.sections = {0};
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const std::uint64_t key = i * inverse;
    records.records.push_back({.section = 0,
                               .instructionOffset = 0,
                               .type = static_cast<TypeId>(key >> 32U),
                               .access = static_cast<std::uint32_t>(key)});
  }
  BtfMaker object;
  const std::vector<std::span<std::byte>> sections(1);
  const auto relocations = relocate(Types::ofObject(object.btf()), records, sections, Targets());
  EXPECT_EQ(relocations.size(), records.records.size());
  EXPECT_EQ(relocations.back().outcome, Outcome::failed);
}

TEST(Hostile, SizesAndOffsetsThatOverflowAreErrors) {
  const auto faultOf = [](const Make& theirs, Kind kind, const char* access) {
    Scenario scenario;
    const TypeId array = scenario.object.array(scenario.object.array(scenario.object.integer("u8", 1), 100), 100);
    const TypeId root = scenario.object.structure("t", {{"f", array}});
    theirs(scenario.kernel);
    return scenario.relocate(kind, root, access, move(0)).fault();
  };
  const auto field = [](std::uint32_t inner, std::uint32_t outer, std::uint32_t at = 0) -> Make {
    return [=](BtfMaker& maker) {
      return maker.structure("t", {{"f", maker.array(maker.array(maker.integer("u8", 1), inner), outer), 0, at}}, 4);
    };
  };
  EXPECT_EQ(faultOf(field(0x10000, 0x10000), Kind::fieldByteSize, "0:0"), Fault::sizeOverflow);
  EXPECT_EQ(faultOf(field(0xffffffff, 0xffffffff), Kind::fieldByteSize, "0:0"), Fault::sizeOverflow);
  EXPECT_EQ(faultOf(field(0xffffffff, 0xffffffff), Kind::typeSize, "0"), Fault::instructionValue);
  EXPECT_EQ(faultOf(field(0xffffffff, 2), Kind::fieldByteOffset, "0:0:1"), Fault::offsetOverflow);
  EXPECT_EQ(faultOf(field(0x20000000, 0x10), Kind::fieldByteOffset, "0:0:1"), Fault::offsetOverflow);
  EXPECT_EQ(faultOf(field(0x1fffffff, 2, 0xfffffff8), Kind::fieldByteOffset, "0:0:1"), Fault::offsetOverflow);
  EXPECT_EQ(faultOf(field(100, 100, 0xfffffff8), Kind::fieldByteOffset, "0:0:1"), Fault::offsetOverflow);
  EXPECT_EQ(faultOf(
                [](BtfMaker& maker) {
                  // Each anonymous struct lies at the end of the one around it.
                  const TypeId type =
                      maker.structure("", {{"f", maker.array(maker.array(maker.integer(), 1), 1), 0, 0x80000000}}, 4);
                  return maker.structure("t", {{"", type, 0, 0x80000000}}, 4);
                },
                Kind::fieldExists, "0:0"),
            Fault::offsetOverflow);
}

TEST(Hostile, ArraysOfMoreDimensionsThanAreFollowedAreErrors) {
  const auto make = [](BtfMaker& maker) {
    TypeId type = maker.integer();
    for (int dimension = 0; dimension < 200; ++dimension) {
      type = maker.array(type, 1);
    }
    return maker.structure("t", {{"f", type, 0, 0}}, 4);
  };
  Scenario scenario;
  const TypeId root = make(scenario.object);
  make(scenario.kernel);
  for (const Kind kind : {Kind::fieldByteOffset, Kind::fieldByteSize, Kind::fieldExists}) {
    expectFailed(scenario.ask(kind, root, "0:0", 1), Fault::nestedTooDeep);
  }
}

TEST(Hostile, ArraysOfLargeStructsOverflow) {
  const auto make = [](BtfMaker& maker) {
    return maker.structure("t", {{"f", maker.array(maker.structure("large", {}, 0x80000000), 2), 0, 0}}, 4);
  };
  Scenario scenario;
  const TypeId root = make(scenario.object);
  make(scenario.kernel);
  expectFailed(scenario.ask(Kind::fieldByteSize, root, "0:0", 0), Fault::sizeOverflow);
  expectFailed(scenario.ask(Kind::fieldByteOffset, root, "0:0:1", 0), Fault::offsetOverflow);
}

TEST(Hostile, AStructOf4GigabytesIsLargerThanItsArray) {
  Scenario scenario;
  const TypeId root = scenario.object.structure("t", {{"f", scenario.object.integer()}}, 0xffffffff);
  scenario.kernel.structure("t", {{"f", scenario.kernel.integer()}}, 0xffffffff);
  expectFailed(scenario.ask(Kind::fieldByteOffset, root, "1:0", 0), Fault::offsetOverflow);
  expectFailed(scenario.ask(Kind::fieldByteOffset, root, "2147483647:0", 0), Fault::offsetOverflow);
  expectResolved(scenario.ask(Kind::fieldByteOffset, root, "0:0", 0), 0);
}

TEST(Hostile, StringsThatDoNotExistAreNoAccess) {
  BtfMaker object;
  const TypeId root = object.structure("t", {{"f", object.integer()}});
  Code code = {move(0)};
  Records records{.sections = {0}, .records = {}};
  for (const std::uint32_t access : {1000U, 0x7fffffffU, 0xffffffffU}) {
    for (const Kind kind : kKinds) {
      records.records.push_back({.section = 0, .instructionOffset = 0, .type = root, .access = access, .kind = kind});
    }
  }
  const std::array sections{std::as_writable_bytes(std::span(code))};
  for (const Relocation& each : relocate(Types::ofObject(object.btf()), records, sections, Targets())) {
    EXPECT_EQ(each.outcome, Outcome::failed);
    EXPECT_EQ(each.fault, isTypeKind(each.record.kind) ? Fault::accessNotZero : Fault::accessMalformed);
  }
  EXPECT_EQ(code.front(), move(0));
}

TEST(Hostile, RecordsPointToInstructionsOfTheirSection) {
  Scenario scenario;
  const TypeId root = scenario.object.structure("t", {{"f", scenario.object.integer()}});
  scenario.kernel.structure("t", {{"f", scenario.kernel.integer(), 0, 64}}, 12);
  Code code = wide(0);
  code.push_back(move(0));
  const Code before = code;
  const auto faultAt = [&](std::uint32_t offset, std::uint32_t section) {
    const Records records{
        .sections = {0, 0},
        .records = {
            {.section = section, .instructionOffset = offset, .type = root, .access = scenario.object.string("0:0")}}};
    const std::array sections{std::as_writable_bytes(std::span(code)), std::span<std::byte>{}};
    const btf::NameIndex index(scenario.kernel.btf(), 1);
    return relocate(Types::ofObject(scenario.object.btf()), records, sections, Targets(scenario.kernel.btf(), index))
        .front()
        .fault;
  };
  EXPECT_EQ(faultAt(24, 0), Fault::instructionOutside);
  EXPECT_EQ(faultAt(0xfffffff8, 0), Fault::instructionOutside);
  EXPECT_EQ(faultAt(4, 0), Fault::instructionMisaligned);
  EXPECT_EQ(faultAt(0xffffffff, 0), Fault::instructionMisaligned);
  EXPECT_EQ(faultAt(8, 0), Fault::wideLoadForm); // its second half
  EXPECT_EQ(faultAt(0, 1), Fault::sectionMissing);
  EXPECT_EQ(code, before);
  EXPECT_EQ(faultAt(16, 0), Fault::none);
  EXPECT_EQ(code[2], move(8));
}

TEST(Hostile, TwoRecordsOfOneInstructionDoNotBothApply) {
  Scenario scenario;
  const TypeId root = scenario.object.structure("t", {{"f", scenario.object.integer()}});
  scenario.kernel.structure("t", {{"f", scenario.kernel.integer(), 0, 64}}, 12);
  Code code = {move(0)};
  const Record record{.section = 0, .instructionOffset = 0, .type = root, .access = scenario.object.string("0:0")};
  const Records records{.sections = {0}, .records = {record, record}};
  const std::array sections{std::as_writable_bytes(std::span(code))};
  const btf::NameIndex index(scenario.kernel.btf(), 1);
  const auto relocations =
      relocate(Types::ofObject(scenario.object.btf()), records, sections, Targets(scenario.kernel.btf(), index));
  EXPECT_EQ(relocations[0].outcome, Outcome::resolved);
  EXPECT_EQ(relocations[1].fault, Fault::instructionValue);
  EXPECT_EQ(code.front(), move(8));
}

} // namespace
} // namespace btfd::core
