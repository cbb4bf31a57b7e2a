// Enumerators: whether they are there, and their values of 32 and 64 bits, signed and not.
#include "scenario.h"

namespace btfd::core {
namespace {

class EnumeratorTest : public ScenarioTest {
 protected:
  Relocated wideValue(TypeId type, std::uint64_t local) {
    return scenario_.relocate(Kind::enumeratorValue, type, "0", wide(local));
  }
};

TEST_F(EnumeratorTest, AreFoundByName) {
  const TypeId ours = object_.enumeration("e", {{"A", 1}, {"B", 2}, {"C", 3}});
  kernel_.enumeration("e", {{"B", 20}, {"X", 30}, {"A", 10}});
  expectResolved(scenario_.ask(Kind::enumeratorValue, ours, "0", 1), 10);
  expectResolved(scenario_.ask(Kind::enumeratorValue, ours, "1", 2), 20);
  expectPoisoned(scenario_.ask(Kind::enumeratorValue, ours, "2", 3), Fault::noMatch);
  expectResolved(scenario_.ask(Kind::enumeratorExists, ours, "0", 1), 1);
  expectResolved(scenario_.ask(Kind::enumeratorExists, ours, "2", 1), 0);
}

TEST_F(EnumeratorTest, HaveFlavors) {
  const TypeId ours = object_.enumeration("e___old", {{"A___old", 1}, {"B", 2}});
  kernel_.enumeration("e", {{"A", 10}, {"B___2", 20}});
  expectResolved(scenario_.ask(Kind::enumeratorValue, ours, "0", 1), 10);
  expectResolved(scenario_.ask(Kind::enumeratorValue, ours, "1", 2), 20);
}

TEST_F(EnumeratorTest, OfATypedefAreTheEnums) {
  const TypeId ours = object_.definedAs("e_t", object_.enumeration("", {{"A", 1}}));
  kernel_.definedAs("e_t", kernel_.constant(kernel_.enumeration("", {{"A", 7}})));
  expectResolved(scenario_.ask(Kind::enumeratorValue, ours, "0", 1), 7);
}

TEST_F(EnumeratorTest, ATypedefOfSomethingElseHasNone) {
  const TypeId ours = object_.definedAs("e_t", object_.enumeration("", {{"A", 1}}));
  kernel_.definedAs("e_t", kernel_.integer());
  expectPoisoned(scenario_.ask(Kind::enumeratorValue, ours, "0", 1), Fault::noMatch);
  expectResolved(scenario_.ask(Kind::enumeratorExists, ours, "0", 1), 0);
}

TEST_F(EnumeratorTest, MayGrowAndShrink) {
  const TypeId narrow = object_.enumeration("narrow", {{"A", 1}});
  const TypeId large = object_.enumeration64("large", {{"A", 0x123456789abcdef0U}});
  kernel_.enumeration64("narrow", {{"A", 0xfedcba9876543210U}});
  kernel_.enumeration("large", {{"A", 5}});
  EXPECT_EQ(wideValue(narrow, 1).code, wide(0xfedcba9876543210U));
  EXPECT_EQ(wideValue(large, 0x123456789abcdef0U).code, wide(5));
}

TEST_F(EnumeratorTest, NegativeValuesAreExtendedWhereTheEnumIsSigned) {
  const TypeId ours = object_.enumeration("e", {{"A", static_cast<std::uint64_t>(-1)}}, true);
  kernel_.enumeration("e", {{"A", static_cast<std::uint64_t>(-5)}}, true);
  EXPECT_EQ(wideValue(ours, UINT64_MAX).code, wide(static_cast<std::uint64_t>(-5)));
  expectResolved(scenario_.ask(Kind::enumeratorValue, ours, "0", -1), static_cast<std::uint64_t>(-5));
}

TEST_F(EnumeratorTest, LargeValuesAreNotExtendedWhereItIsNot) {
  const TypeId ours = object_.enumeration("e", {{"A", 0x80000000U}});
  kernel_.enumeration("e", {{"A", 0x90000000U}});
  EXPECT_EQ(wideValue(ours, 0x80000000U).code, wide(0x90000000U));
}

TEST_F(EnumeratorTest, OldCompilersExtendedValuesWithoutSayingSo) {
  const TypeId ours = object_.enumeration("e", {{"A", 0xffffffffU}});
  kernel_.enumeration("e", {{"A", 0xfffffffeU}});
  EXPECT_EQ(wideValue(ours, UINT64_MAX).code, wide(UINT64_MAX - 1));
}

TEST_F(EnumeratorTest, AKernelThatDoesNotTellTheSignHasTheObjects) {
  const TypeId ours = object_.enumeration("e", {{"A", static_cast<std::uint64_t>(-1)}}, true);
  kernel_.enumeration("e", {{"A", 0xfffffffeU}});
  EXPECT_EQ(wideValue(ours, UINT64_MAX).code, wide(UINT64_MAX - 1));
}

TEST_F(EnumeratorTest, AValueThatNoImmediateHoldsIsAnError) {
  const TypeId ours = object_.enumeration64("e", {{"A", 1}});
  kernel_.enumeration64("e", {{"A", 0x100000001U}});
  expectFailed(scenario_.ask(Kind::enumeratorValue, ours, "0", 1), Fault::immediateTooLarge);
  kernel_ = BtfMaker();
  kernel_.enumeration64("e", {{"A", static_cast<std::uint64_t>(-7)}}, true);
  expectResolved(scenario_.ask(Kind::enumeratorValue, ours, "0", 1), static_cast<std::uint64_t>(-7));
}

TEST_F(EnumeratorTest, TheObjectsValueIsExpectedInTheInstruction) {
  const TypeId ours = object_.enumeration64("e", {{"A", 0x100000001U}});
  kernel_.enumeration64("e", {{"A", 2}});
  EXPECT_EQ(wideValue(ours, 1).fault(), Fault::instructionValue);
  EXPECT_EQ(wideValue(ours, 0x100000001U).code, wide(2));
}

} // namespace
} // namespace btfd::core
