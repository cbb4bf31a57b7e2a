// Which types of a kernel a type of the object may stand for.
#include "scenario.h"
#include "test_support/files.h"

#include <bpf/libbpf.h>
#include <gmock/gmock.h>

namespace btfd::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<TypeId> candidatesOf(const BtfMaker& object, const BtfMaker& kernel, TypeId type) {
  const btf::NameIndex index(kernel.btf(), 1);
  std::vector<TargetType> found;
  Work work;
  EXPECT_TRUE(Targets(kernel.btf(), index).findCandidates(Types::ofObject(object.btf()), type, work, found));
  std::vector<TypeId> ids;
  for (const TargetType& each : found) {
    EXPECT_EQ(each.target, 0U);
    ids.push_back(each.id);
  }
  return ids;
}

TEST(Candidates, HaveTheNameWithoutFlavor) {
  BtfMaker kernel;
  const TypeId first = kernel.structure("task_struct", {});
  kernel.structure("task", {});
  kernel.structure("task_struct_", {});
  const TypeId flavor = kernel.structure("task_struct___2", {});
  kernel.structure("", {});
  const TypeId last = kernel.structure("task_struct", {});
  for (const char* name : {"task_struct", "task_struct___old", "task_struct___", "task_struct____x"}) {
    BtfMaker object;
    const TypeId local = object.structure(name, {});
    if (std::string_view(name).ends_with('_') || std::string_view(name).ends_with("____x")) {
      // No flavors: libbpf wants a character other than an underscore on both sides of the separator.
      EXPECT_THAT(candidatesOf(object, kernel, local), IsEmpty()) << name;
    } else {
      EXPECT_THAT(candidatesOf(object, kernel, local), ElementsAre(first, flavor, last)) << name;
    }
  }
}

TEST(Candidates, AreOfTheSameKind) {
  const auto make = [](BtfMaker& maker) {
    const TypeId integer = maker.integer("n", 4);
    const TypeId prototype = maker.prototype(0, {});
    return std::vector<TypeId>{maker.structure("n", {}),
                               maker.unionOf("n", {}),
                               maker.forward("n"),
                               maker.definedAs("n", integer),
                               maker.floating("n", 4),
                               maker.function("n", prototype),
                               maker.variable("n", integer),
                               maker.declarationTag("n", integer),
                               integer};
  };
  BtfMaker object;
  BtfMaker kernel;
  const auto ours = make(object);
  const auto theirs = make(kernel);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_THAT(candidatesOf(object, kernel, ours[i]), ElementsAre(theirs[i])) << i;
  }
}

TEST(Candidates, EnumsOfEachWidthAreOfOneKind) {
  BtfMaker kernel;
  const TypeId narrow = kernel.enumeration("e", {{"A", 1}});
  const TypeId wide = kernel.enumeration64("e", {{"A", 1}});
  BtfMaker object;
  EXPECT_THAT(candidatesOf(object, kernel, object.enumeration("e", {})), ElementsAre(narrow, wide));
  EXPECT_THAT(candidatesOf(object, kernel, object.enumeration64("e", {})), ElementsAre(narrow, wide));
}

TEST(Candidates, ATypedefIsNotWhatItNames) {
  BtfMaker kernel;
  const TypeId anonymous = kernel.structure("", {{"f", kernel.integer()}});
  const TypeId named = kernel.definedAs("s", anonymous);
  Scenario scenario;
  BtfMaker object;
  EXPECT_THAT(candidatesOf(object, kernel, object.structure("s", {})), IsEmpty());
  EXPECT_THAT(candidatesOf(object, kernel, object.definedAs("s", object.structure("", {}))), ElementsAre(named));
}

TEST(Candidates, NoneMeansPoison) {
  Scenario scenario;
  const TypeId root = scenario.object.structure("s", {{"f", scenario.object.integer()}});
  scenario.kernel.forward("s");
  const auto result = scenario.ask(Kind::fieldByteOffset, root, "0:0", 0);
  expectPoisoned(result, Fault::noCandidate);
  EXPECT_EQ(result.relocation.candidates, 0U);
}

TEST(Candidates, AnAnonymousRootIsAnErrorButForItsLocalId) {
  Scenario scenario;
  const TypeId root = scenario.object.structure("", {{"f", scenario.object.integer()}});
  expectFailed(scenario.ask(Kind::fieldByteOffset, root, "0:0", 0), Fault::anonymousRoot);
  expectFailed(scenario.ask(Kind::typeExists, root, "0", 1), Fault::anonymousRoot);
  expectResolved(scenario.ask(Kind::typeIdLocal, root, "0", 1), root);
  // Modifiers have no names, and void has none.
  expectFailed(scenario.ask(Kind::fieldByteOffset, scenario.object.constant(root), "0:0", 0), Fault::anonymousRoot);
  expectFailed(scenario.ask(Kind::typeExists, 0, "0", 1), Fault::anonymousRoot);
}

TEST(Candidates, ATypeThatTheObjectLacksIsAnError) {
  Scenario scenario;
  const TypeId beyond = scenario.object.next();
  for (const TypeId type : {beyond, beyond + 1, TypeId{0x7fffffff}, TypeId{0xffffffff}}) {
    expectFailed(scenario.ask(Kind::fieldByteOffset, type, "0:0", 0), Fault::unknownType);
    expectFailed(scenario.ask(Kind::typeIdLocal, type, "0", 0), Fault::unknownType);
  }
}

/// A kernel with two modules.
class ModuleTest : public testing::Test {
 protected:
  ModuleTest() {
    libbpf_set_print(nullptr);
    integer_ = kernel_.integer();
    kernel_.structure("in_kernel", {{"f", integer_}});
    root_ = object_.structure("s", {{"f", object_.integer()}});
  }

  void addModule(const char* module, const char* name, std::uint32_t offset) {
    BtfMaker split = BtfMaker::splitFrom(kernel_);
    split.structure(name, {{"f", integer_, 0, offset * 8}}, 64);
    write(module, split);
  }

  void write(const char* name, const BtfMaker& maker) { test_support::writeFile(directory_ / name, maker.bytes()); }

  Relocated relocate(Kind kind = Kind::fieldByteOffset, std::int32_t local = 0) {
    write("vmlinux", kernel_);
    const auto spec = btf::KernelSpec::build({.directory = directory_.path(), .fallbackPath = {}}, 1);
    EXPECT_TRUE(spec) << spec.error().message;
    Relocated result{.relocation = {}, .code = {move(local)}};
    const Records records{
        .sections = {0},
        .records = {{.type = root_, .access = object_.string(isFieldKind(kind) ? "0:0" : "0"), .kind = kind}}};
    const std::array sections{std::as_writable_bytes(std::span(result.code))};
    result.relocation = core::relocate(Types::ofObject(object_.btf()), records, sections, Targets(**spec)).front();
    return result;
  }

  test_support::TemporaryDirectory directory_;
  BtfMaker object_;
  BtfMaker kernel_;
  TypeId integer_ = 0;
  TypeId root_ = 0;
};

TEST_F(ModuleTest, AModuleIsAskedForWhatTheKernelItselfLacks) {
  addModule("driver", "s", 12);
  const auto result = relocate();
  expectResolved(result, 12);
  EXPECT_EQ(result.relocation.type.target, 1U);
  EXPECT_EQ(result.relocation.type.id, 3U);
}

TEST_F(ModuleTest, AModuleIsNotAskedForWhatTheKernelHas) {
  addModule("driver", "s", 12);
  kernel_ = BtfMaker();
  integer_ = kernel_.integer();
  kernel_.structure("s", {{"f", integer_, 0, 64}}, 64);
  addModule("driver", "s", 12);
  const auto result = relocate();
  expectResolved(result, 8);
  EXPECT_EQ(result.relocation.candidates, 1U);
}

TEST_F(ModuleTest, AKernelTypeOfAnotherKindDoesNotKeepModulesOut) {
  kernel_ = BtfMaker();
  integer_ = kernel_.integer();
  kernel_.forward("s");
  addModule("driver", "s", 12);
  expectResolved(relocate(), 12);
}

TEST_F(ModuleTest, AKernelTypeWithoutTheFieldKeepsModulesOut) {
  kernel_ = BtfMaker();
  integer_ = kernel_.integer();
  kernel_.structure("s", {{"g", integer_}});
  addModule("driver", "s", 12);
  expectPoisoned(relocate(), Fault::noMatch);
}

TEST_F(ModuleTest, ModulesMustAgree) {
  addModule("a", "s", 12);
  addModule("b", "s", 12);
  expectResolved(relocate(), 12);
  addModule("b", "s", 16);
  const auto result = relocate();
  expectFailed(result, Fault::ambiguousValue);
  EXPECT_EQ(result.relocation.type.target, 1U);
  EXPECT_EQ(result.relocation.other.target, 2U);
}

TEST_F(ModuleTest, TypeIdsOfModulesCountFromTheKernelsOn) {
  addModule("driver", "s", 12);
  expectResolved(relocate(Kind::typeIdTarget), 3);
}

TEST_F(ModuleTest, ABrokenModuleIsPassedOver) {
  addModule("b", "s", 12);
  test_support::writeFile(directory_ / "a", "no BTF");
  const auto result = relocate();
  expectResolved(result, 12);
  EXPECT_EQ(result.relocation.type.target, 1U);
}

TEST(Candidates, WithoutAKernelOnlyLocalIdsAreKnown) {
  BtfMaker object;
  const TypeId root = object.structure("s", {{"f", object.integer()}});
  Code code = {move(0), move(7)};
  const Records records{
      .sections = {0},
      .records = {{.instructionOffset = 0, .type = root, .access = object.string("0:0")},
                  {.instructionOffset = 8, .type = root, .access = object.string("0"), .kind = Kind::typeIdLocal}}};
  const std::array sections{std::as_writable_bytes(std::span(code))};
  const auto relocations = relocate(Types::ofObject(object.btf()), records, sections, Targets());
  EXPECT_EQ(relocations[0].fault, Fault::noCandidate);
  EXPECT_EQ(relocations[1].outcome, Outcome::resolved);
  EXPECT_EQ(code[1], move(static_cast<std::int32_t>(root)));
}

} // namespace
} // namespace btfd::core
