// The least BTF of kernels made by hand. That relocations come to the same with it, minimizeBtf tries itself; here it
// is what is kept of the types, and what would go wrong with less.
#include "core/types.h"
#include "made_object.h"
#include "offline/minimized_btf.h"

#include <bpf/libbpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace btfd::offline {
namespace {

using check::ObjectToCheck;
using check::TargetKernel;
using core::Kind;
using core::TypeId;
using test_support::BtfMaker;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MinimizedBtfTest : public testing::Test {
 protected:
  MinimizedBtfTest() { libbpf_set_print(nullptr); }

  Result<MinimizedBtf> minimize(const std::vector<Question>& questions, const TargetKernel& kernel) {
    const ObjectToCheck object = objectThatAsks(object_, questions);
    return minimizeBtf(std::span(&object, 1), kernel);
  }

  /// What is left of kernel_.
  std::unique_ptr<TargetKernel> least(const std::vector<Question>& questions) {
    const auto minimized = minimize(questions, *kernelOf(kernel_));
    EXPECT_TRUE(minimized) << minimized.error().message;
    auto kernel = TargetKernel::make("least", {.btf = minimized->btf, .distilledBase = {}});
    EXPECT_TRUE(kernel) << kernel.error().message;
    return std::move(*kernel);
  }

  static TypeId find(const TargetKernel& kernel, const char* name, std::uint32_t kind = BTF_KIND_STRUCT) {
    return kernel.targets()[0].index->find(name, kind).value_or(0);
  }

  static const struct btf_type& type(const TargetKernel& kernel, TypeId id) {
    return *kernel.targets()[0].types.find(id);
  }

  /// Names of the members of a struct, or of the enumerators of an enum.
  static std::vector<std::string> members(const TargetKernel& kernel, TypeId id) {
    const core::Types& types = kernel.targets()[0].types;
    std::vector<std::string> names;
    for (std::uint32_t index = 0; index < btf_vlen(types.find(id)); ++index) {
      const struct btf_type& type = *types.find(id);
      names.emplace_back(types.string(btf_is_composite(&type) ? btf_members(&type)[index].name_off
                                                              : core::enumeratorName(type, index)));
    }
    return names;
  }

  BtfMaker object_;
  BtfMaker kernel_;
};

TEST_F(MinimizedBtfTest, HasOnlyTheMembersThatAreUsedWhereTheyWere) {
  const TypeId root = object_.structure("s", {{"b", object_.integer()}, {"gone", object_.integer()}});
  const TypeId integer = kernel_.integer();
  kernel_.structure("other", {{"b", integer}});
  kernel_.structure("s", {{"a", integer}, {"b", integer}, {"c", kernel_.pointer(1)}});
  const auto kernel =
      least({{.type = root, .access = "0:0"}, {.kind = Kind::fieldExists, .type = root, .access = "0:1", .local = 1}});
  const TypeId found = find(*kernel, "s");
  EXPECT_THAT(members(*kernel, found), ElementsAre("b"));
  EXPECT_EQ(type(*kernel, found).size, 16U);
  EXPECT_EQ(btf_member_bit_offset(&type(*kernel, found), 0), 32U);
  EXPECT_EQ(find(*kernel, "other"), 0U);
}

TEST_F(MinimizedBtfTest, CutsOffWhatIsBehindPointersUnlessItIsUsed) {
  const TypeId inner = object_.structure("inner", {{"x", object_.integer()}});
  const TypeId root = object_.structure("s", {{"p", object_.pointer(inner)}, {"q", object_.pointer(inner)}});
  const TypeId integer = kernel_.integer();
  const TypeId used = kernel_.structure("inner", {{"x", integer}, {"y", integer}});
  const TypeId unused = kernel_.structure("unused", {{"x", integer}});
  kernel_.structure("s", {{"p", kernel_.pointer(used)}, {"q", kernel_.pointer(unused)}});
  const auto kernel = least(
      {{.type = root, .access = "0:0"}, {.type = root, .access = "0:1", .local = 8}, {.type = inner, .access = "0:0"}});
  const TypeId found = find(*kernel, "s");
  ASSERT_THAT(members(*kernel, found), ElementsAre("p", "q"));
  const auto pointee = [&](std::uint32_t index) {
    return type(*kernel, btf_members(&type(*kernel, found))[index].type).type;
  };
  EXPECT_EQ(pointee(0), find(*kernel, "inner"));
  EXPECT_EQ(pointee(1), 0U);
  EXPECT_EQ(find(*kernel, "unused"), 0U);
}

TEST_F(MinimizedBtfTest, KeepsTheWayThroughAnonymousMembers) {
  const TypeId root = object_.structure("s", {{"x", object_.integer()}});
  const TypeId integer = kernel_.integer();
  const TypeId vain = kernel_.structure("", {{"z", integer}});
  const TypeId way = kernel_.unionOf("", {{"y", integer}, {"x", integer}});
  kernel_.structure("s", {{"", vain}, {"", way}});
  const auto kernel = least({{.type = root, .access = "0:0"}});
  const struct btf_type& found = type(*kernel, find(*kernel, "s"));
  ASSERT_EQ(btf_vlen(&found), 1U);
  EXPECT_EQ(btf_member_bit_offset(&found, 0), 32U);
  EXPECT_THAT(members(*kernel, btf_members(&found)[0].type), ElementsAre("x"));
}

TEST_F(MinimizedBtfTest, KeepsBitfields) {
  const TypeId root = object_.structure("s", {{"f", object_.integer(), 3, 0}}, 4);
  kernel_.structure("s", {{"e", kernel_.integer(), 5, 0}, {"f", 1, 7, 5}}, 4);
  const auto kernel = least({{.kind = Kind::fieldRightShift, .type = root, .access = "0:0", .local = 61}});
  const struct btf_type& found = type(*kernel, find(*kernel, "s"));
  ASSERT_EQ(btf_vlen(&found), 1U);
  EXPECT_EQ(btf_member_bitfield_size(&found, 0), 7U);
  EXPECT_EQ(btf_member_bit_offset(&found, 0), 5U);
}

TEST_F(MinimizedBtfTest, HasOnlyTheEnumeratorsThatAreUsed) {
  const TypeId root = object_.enumeration("e", {{"A", 1}, {"GONE", 2}});
  const TypeId wide = object_.enumeration64("w", {{"W", 1}});
  kernel_.enumeration("e", {{"B", 5}, {"A", 7}});
  kernel_.enumeration64("w", {{"V", 1}, {"W", 0x100000002}});
  const auto kernel = least({{.kind = Kind::enumeratorValue, .type = root, .access = "0", .local = 1},
                             {.kind = Kind::enumeratorExists, .type = root, .access = "1", .local = 1},
                             {.kind = Kind::enumeratorExists, .type = wide, .access = "0", .local = 1}});
  EXPECT_THAT(members(*kernel, find(*kernel, "e", BTF_KIND_ENUM)), ElementsAre("A"));
  const struct btf_type& found = type(*kernel, find(*kernel, "w", BTF_KIND_ENUM64));
  ASSERT_EQ(btf_vlen(&found), 1U);
  EXPECT_EQ(btf_enum64_value(btf_enum64(&found)), 0x100000002U);
}

TEST_F(MinimizedBtfTest, HasNoMembersWhereOnlyTheSizeCounts) {
  const TypeId root = object_.structure("s", {{"f", object_.integer()}});
  kernel_.structure("s", {{"f", kernel_.integer()}}, 40);
  const auto kernel = least({{.kind = Kind::typeSize, .type = root, .local = 4}});
  EXPECT_THAT(members(*kernel, find(*kernel, "s")), IsEmpty());
  EXPECT_EQ(type(*kernel, find(*kernel, "s")).size, 40U);
}

TEST_F(MinimizedBtfTest, HasAllMembersWhereWholeTypesAreCompared) {
  const TypeId root = object_.structure("s", {{"f", object_.integer()}});
  const TypeId integer = kernel_.integer();
  kernel_.structure("s", {{"e", kernel_.pointer(integer)}, {"f", integer}});
  const auto kernel = least({{.kind = Kind::typeMatches, .type = root, .local = 1}});
  EXPECT_THAT(members(*kernel, find(*kernel, "s")), ElementsAre("e", "f"));
}

TEST_F(MinimizedBtfTest, DoesNotMakeAnArrayFlexible) {
  const TypeId root = object_.structure("s", {{"a", object_.array(object_.integer(), 4)}});
  const TypeId integer = kernel_.integer();
  kernel_.structure("s", {{"a", kernel_.array(integer, 0)}, {"b", integer}, {"c", integer}});
  const auto kernel = least({{.type = root, .access = "0:0:2", .local = 8}});
  EXPECT_THAT(members(*kernel, find(*kernel, "s")), ElementsAre("a", "c"));
}

TEST_F(MinimizedBtfTest, KeepsAllOfSeveralCandidates) {
  const TypeId root = object_.structure("s", {{"f", object_.integer()}});
  kernel_.structure("s", {{"f", kernel_.integer(), 0, 64}}, 12);
  kernel_.structure("s___old", {{"f", 1, 0, 32}}, 12);
  const auto minimized = minimize({{.type = root, .access = "0:0"}}, *kernelOf(kernel_));
  ASSERT_TRUE(minimized) << minimized.error().message;
  EXPECT_EQ(minimized->objects.front().counts.failed, 1U);
  ASSERT_EQ(minimized->objects.front().refused.size(), 1U);
  EXPECT_THAT(minimized->objects.front().refused.front().message, HasSubstr("nothing tells which of them is meant"));
}

TEST_F(MinimizedBtfTest, KeepsThePointersSize) {
  const TypeId root = object_.structure("s", {{"p", object_.pointer()}});
  kernel_.unsignedInteger("long unsigned int", 4);
  kernel_.structure("s", {{"p", kernel_.pointer(), 0, 32}}, 8);
  const auto kernel = least({{.kind = Kind::fieldByteSize, .type = root, .access = "0:0", .local = 8}});
  EXPECT_EQ(kernel->targets()[0].types.pointerSize(), 4U);
}

TEST_F(MinimizedBtfTest, KeepsIdsThatAreAskedFor) {
  const TypeId root = object_.structure("s", {{"f", object_.integer()}});
  const TypeId other = object_.structure("t", {{"f", 1}});
  for (int i = 0; i < 20; ++i) {
    kernel_.pointer();
  }
  const TypeId late = kernel_.structure("s", {{"f", kernel_.integer()}});
  kernel_.structure("t", {{"f", late - 1}});
  const std::vector<Question> questions = {{.kind = Kind::typeIdTarget, .type = root, .local = 1},
                                           {.type = other, .access = "0:0"}};
  EXPECT_EQ(find(*least(questions), "s"), late);
  const auto minimized = minimize(questions, *kernelOf(kernel_));
  EXPECT_EQ(minimized->types, late);
  EXPECT_EQ(minimized->fillers, late - 3);
}

TEST_F(MinimizedBtfTest, IsInTheKernelsByteOrder) {
  const TypeId root = object_.structure("s", {{"f", object_.integer()}});
  kernel_.structure("s", {{"f", kernel_.integer()}});
  const auto other = btf__endianness(kernel_.get()) == BTF_LITTLE_ENDIAN ? BTF_BIG_ENDIAN : BTF_LITTLE_ENDIAN;
  ASSERT_EQ(btf__set_endianness(kernel_.get(), other), 0);
  EXPECT_EQ(least({{.type = root, .access = "0:0"}})->isBigEndian(), other == BTF_BIG_ENDIAN);
}

TEST_F(MinimizedBtfTest, HasTheTypesOfModules) {
  const TypeId root = object_.structure("of_module", {{"f", object_.integer()}});
  const TypeId integer = kernel_.integer();
  BtfMaker module = BtfMaker::splitFrom(kernel_);
  module.structure("of_module", {{"e", integer}, {"f", integer}});
  const auto kernel = kernelOf(kernel_);
  ASSERT_TRUE(kernel->addModule("module", {.btf = module.bytes(), .distilledBase = {}}));
  const auto minimized = minimize({{.type = root, .access = "0:0"}}, *kernel);
  ASSERT_TRUE(minimized) << minimized.error().message;
  const auto least = TargetKernel::make("least", {.btf = minimized->btf, .distilledBase = {}});
  EXPECT_THAT(members(**least, find(**least, "of_module")), ElementsAre("f"));
}

TEST_F(MinimizedBtfTest, IsNotMadeWhereAModulesTypeWouldPassForTheKernels) {
  const TypeId integer = object_.integer();
  const TypeId shared = object_.structure("shared", {{"f", integer}});
  const TypeId root = object_.structure("of_module", {{"s", shared}});
  const TypeId theirs = kernel_.integer();
  kernel_.structure("shared", {{"f", theirs}});
  BtfMaker module = BtfMaker::splitFrom(kernel_);
  const TypeId own = module.structure("shared", {{"e", theirs}, {"f", theirs}});
  module.structure("of_module", {{"s", own}});
  const auto kernel = kernelOf(kernel_);
  ASSERT_TRUE(kernel->addModule("module", {.btf = module.bytes(), .distilledBase = {}}));
  const auto minimized = minimize({{.type = shared, .access = "0:0"}, {.type = root, .access = "0:0:0"}}, *kernel);
  ASSERT_FALSE(minimized);
  EXPECT_THAT(minimized.error().message, HasSubstr("of struct shared.f would come out differently"));
}

TEST_F(MinimizedBtfTest, IsNotMadeWhereNothingIsAskedThatTheKernelHas) {
  const TypeId root = object_.structure("s", {{"f", object_.integer()}});
  kernel_.integer();
  const auto minimized = minimize({{.type = root, .access = "0:0"}}, *kernelOf(kernel_));
  ASSERT_FALSE(minimized);
  EXPECT_EQ(minimized.error().code, ENODATA);
  EXPECT_THAT(minimized.error().message, HasSubstr("the first thing amiss: struct s.f: the kernel has no struct 's'"));
}

TEST_F(MinimizedBtfTest, ServesSeveralObjects) {
  BtfMaker otherBtf;
  std::vector<ObjectToCheck> objects;
  objects.push_back(
      objectThatAsks(object_, {{.type = object_.structure("s", {{"a", object_.integer()}}), .access = "0:0"}}));
  objects.push_back(
      objectThatAsks(otherBtf, {{.type = otherBtf.structure("s", {{"c", otherBtf.integer()}}), .access = "0:0"}}));
  const TypeId integer = kernel_.integer();
  kernel_.structure("s", {{"a", integer}, {"b", integer}, {"c", integer}});
  const auto minimized = minimizeBtf(objects, *kernelOf(kernel_));
  ASSERT_TRUE(minimized) << minimized.error().message;
  const auto least = TargetKernel::make("least", {.btf = minimized->btf, .distilledBase = {}});
  EXPECT_THAT(members(**least, find(**least, "s")), ElementsAre("a", "c"));
}

} // namespace
} // namespace btfd::offline
