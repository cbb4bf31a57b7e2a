// What people are told of a relocation.
#include "core/explain.h"
#include "scenario.h"

#include <gmock/gmock.h>

namespace btfd::core {
namespace {

using testing::HasSubstr;

class ExplainTest : public ScenarioTest {
 protected:
  /// Why the object's question about the kernel has no answer.
  std::string reason(Kind kind, TypeId type, const char* access, const bpf_insn& instruction) {
    const auto result = scenario_.relocate(kind, type, access, instruction);
    EXPECT_NE(result.outcome(), Outcome::resolved);
    const btf::NameIndex index(kernel_.btf(), 1);
    const Targets kernel(kernel_.btf(), index);
    NearNames near(kernel);
    return explain(Types::ofObject(object_.btf()), kernel, result.relocation, near);
  }

  std::string reason(Kind kind, TypeId type, const char* access) { return reason(kind, type, access, move(0)); }

  std::string path(Kind kind, TypeId type, const char* access) {
    return accessPath(
        Types::ofObject(object_.btf()),
        {.section = 0, .instructionOffset = 0, .type = type, .access = object_.string(access), .kind = kind});
  }
};

TEST_F(ExplainTest, AMissingMemberIsNamedWithThoseThatComeNear) {
  const TypeId root = object_.structure("task_struct", {{"state", object_.integer()}});
  kernel_.structure("task_struct", {{"__state", kernel_.integer()}, {"pid", kernel_.integer()}});
  EXPECT_EQ(reason(Kind::fieldByteOffset, root, "0:0"),
            "the kernel's struct task_struct has no 'state'; it has '__state'");
}

TEST_F(ExplainTest, AnonymousMembersInPowersOf30AreNotAllGoneThrough) {
  const TypeId root = object_.structure("task_struct", {{"state", object_.integer()}});
  TypeId inner = kernel_.structure("", {});
  for (int level = 0; level < 6; ++level) {
    inner = kernel_.structure("", std::vector<Member>(30, Member{.name = "", .type = inner, .bits = 0, .at = 0}), 4);
  }
  kernel_.structure("task_struct", {{"__state", kernel_.integer(), 0, 0}, {"", inner, 0, 32}}, 8);
  EXPECT_EQ(reason(Kind::fieldByteOffset, root, "0:0"),
            "the kernel's struct task_struct has no 'state'; it has '__state'");
}

TEST_F(ExplainTest, MembersOfAnonymousMembersComeNearToo) {
  const TypeId root = object_.structure("s", {{"counters", object_.integer()}});
  const TypeId inner = kernel_.structure("", {{"counter", kernel_.integer()}});
  kernel_.structure("s", {{"", inner}});
  EXPECT_THAT(reason(Kind::fieldByteOffset, root, "0:0"), HasSubstr("it has 'counter'"));
}

TEST_F(ExplainTest, WhereNothingComesNearNothingIsSuggested) {
  const TypeId root = object_.structure("s", {{"wished_for", object_.integer()}});
  kernel_.structure("s", {{"a", kernel_.integer()}});
  EXPECT_EQ(reason(Kind::fieldByteOffset, root, "0:0"), "the kernel's struct s has no 'wished_for'");
}

TEST_F(ExplainTest, AMissingTypeIsNamedWithThoseThatComeNear) {
  const TypeId root = object_.structure("task_strukt", {{"pid", object_.integer()}});
  kernel_.structure("task_struct", {{"pid", kernel_.integer()}});
  EXPECT_EQ(reason(Kind::fieldByteOffset, root, "0:0"), "the kernel has no struct 'task_strukt'; it has 'task_struct'");
}

TEST_F(ExplainTest, AFlavorIsNotPartOfTheName) {
  const TypeId root = object_.structure("gone___v2", {{"pid", object_.integer()}});
  kernel_.structure("s", {{"pid", kernel_.integer()}});
  EXPECT_EQ(reason(Kind::fieldByteOffset, root, "0:0"), "the kernel has no struct 'gone'");
  EXPECT_EQ(path(Kind::fieldByteOffset, root, "0:0"), "struct gone___v2.pid");
}

TEST_F(ExplainTest, ATypeOfAnotherKindIsSaid) {
  const TypeId root = object_.structure("x", {{"pid", object_.integer()}});
  kernel_.unionOf("x", {{"pid", kernel_.integer()}});
  EXPECT_EQ(reason(Kind::fieldByteOffset, root, "0:0"), "the kernel has no struct 'x'; it has union x");
}

TEST_F(ExplainTest, AMemberOfAnotherKindOfType) {
  const TypeId root = object_.structure("s", {{"f", object_.pointer(object_.integer())}});
  kernel_.structure("s", {{"f", kernel_.integer()}});
  EXPECT_EQ(reason(Kind::fieldByteOffset, root, "0:0"),
            "in the kernel 'f' is of another kind of type: int, while the object has a pointer");
}

TEST_F(ExplainTest, AnArrayThatIsShorter) {
  const TypeId root = object_.structure("s", {{"f", object_.array(object_.integer(), 8)}});
  kernel_.structure("s", {{"f", kernel_.array(kernel_.integer(), 4)}});
  EXPECT_EQ(reason(Kind::fieldByteOffset, root, "0:0:7", move(28)),
            "the kernel's array is shorter: it has no element 7");
  EXPECT_EQ(path(Kind::fieldByteOffset, root, "0:0:7"), "struct s.f[7]");
}

TEST_F(ExplainTest, AMissingEnumerator) {
  const TypeId root = object_.enumeration("color", {{"RED", 1}, {"GREEN", 2}});
  kernel_.enumeration("color", {{"REDD", 1}});
  EXPECT_EQ(reason(Kind::enumeratorValue, root, "0", move(1)), "the kernel's enum color has no 'RED'; it has 'REDD'");
  EXPECT_EQ(path(Kind::enumeratorValue, root, "1"), "enum color.GREEN");
}

TEST_F(ExplainTest, AFieldOfAnotherSizeThatCannotBeLoaded) {
  const TypeId root = object_.structure("s", {{"f", object_.integer("int", 4)}});
  kernel_.structure("s", {{"f", kernel_.integer("long", 8)}});
  EXPECT_THAT(reason(Kind::fieldByteOffset, root, "0:0", load(BPF_W, 0)),
              HasSubstr("the field has 4 bytes in the object and 8 in the kernel"));
}

TEST_F(ExplainTest, TwoTypesThatDisagreeAreBothNamed) {
  const TypeId root = object_.structure("s", {{"f", object_.integer()}});
  const TypeId integer = kernel_.integer();
  const TypeId first = kernel_.structure("s", {{"f", integer}});
  const TypeId second = kernel_.structure("s", {{"before", integer}, {"f", integer}});
  const std::string text = reason(Kind::fieldByteOffset, root, "0:0");
  EXPECT_THAT(text, HasSubstr("type " + std::to_string(first) + " of vmlinux"));
  EXPECT_THAT(text, HasSubstr("type " + std::to_string(second) + " of vmlinux"));
}

TEST_F(ExplainTest, FaultsOfTheObjectHaveWords) {
  const TypeId root = object_.structure("s", {{"f", object_.integer()}});
  kernel_.structure("s", {{"f", kernel_.integer()}});
  EXPECT_THAT(reason(Kind::fieldByteOffset, root, "0:x"), HasSubstr("access string"));
  EXPECT_EQ(path(Kind::fieldByteOffset, root, "0:x"), "struct s \"0:x\"");
  EXPECT_THAT(reason(Kind::fieldByteOffset, root, "0:0", move(7)), HasSubstr("does not hold the value"));
  EXPECT_THAT(reason(Kind::fieldByteOffset, 999, "0:0"), HasSubstr("type that its BTF does not have"));
  EXPECT_THAT(reason(static_cast<Kind>(13), root, "0"), HasSubstr("kind of relocation"));
  EXPECT_EQ(kindName(static_cast<Kind>(13)), "unknown");
}

TEST_F(ExplainTest, WhatIsResolvedHasNoReason) {
  const TypeId root = object_.structure("s", {{"f", object_.integer()}});
  kernel_.structure("s", {{"f", kernel_.integer()}});
  const auto result = scenario_.ask(Kind::fieldByteOffset, root, "0:0", 0);
  const Targets none;
  NearNames near(none);
  EXPECT_EQ(explain(Types::ofObject(object_.btf()), none, result.relocation, near), "");
}

TEST_F(ExplainTest, ANameOfAnyLengthIsCut) {
  const std::string name(std::size_t{1} << 20U, 'n');
  const TypeId root = object_.structure(name.c_str(), {{"f", object_.integer()}});
  const std::string text = reason(Kind::fieldByteOffset, root, "0:0");
  EXPECT_THAT(text, HasSubstr("nnn..."));
  EXPECT_LT(text.size(), 400U);
  EXPECT_LT(path(Kind::fieldByteOffset, root, "0:0").size(), 400U);
}

} // namespace
} // namespace btfd::core
