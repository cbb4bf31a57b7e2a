// Several types of the kernel with one name: never a number from a wrong layout, whatever the order of relocations.
#include "scenario.h"

#include <algorithm>

namespace btfd::core {
namespace {

constexpr Kind kOffset = Kind::fieldByteOffset;

class AmbiguityTest : public ScenarioTest {
 protected:
  AmbiguityTest() {
    const TypeId integer = object_.integer();
    root_ = object_.structure("s", {{"a", integer}, {"b", integer}, {"c", integer}});
    theirs_ = kernel_.integer();
  }

  /// A candidate with these fields at these offsets.
  void candidate(const char* name, const std::vector<std::pair<const char*, std::uint32_t>>& fields) {
    std::vector<Member> members;
    for (const auto& [field, offset] : fields) {
      members.push_back({.name = field, .type = theirs_, .bits = 0, .at = offset * 8});
    }
    kernel_.structure(name, members, 64);
  }

  /// Asks for the offsets of these fields, in each order, and demands one answer of all: for each field, the value, or
  /// the fault as a negative number.
  std::vector<std::int64_t> inEachOrder(std::vector<Question> questions) {
    std::vector<std::size_t> order(questions.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
    }
    std::vector<std::int64_t> first;
    do {
      std::vector<Question> ordered;
      for (const std::size_t i : order) {
        ordered.push_back(questions[i]);
      }
      const auto results = scenario_.relocateAll(ordered);
      std::vector<std::int64_t> answers(questions.size());
      for (std::size_t i = 0; i < order.size(); ++i) {
        answers[order[i]] = results[i].outcome() == Outcome::resolved ? static_cast<std::int64_t>(results[i].value())
                                                                      : -static_cast<std::int64_t>(results[i].fault());
      }
      EXPECT_TRUE(first.empty() || first == answers);
      first = answers;
    } while (std::ranges::next_permutation(order).found);
    return first;
  }

  std::vector<Question> offsetsOf(const std::vector<const char*>& accesses) {
    std::vector<Question> questions;
    for (const char* access : accesses) {
      const std::int32_t local = (access[2] - '0') * 4;
      questions.push_back({.kind = kOffset, .type = root_, .access = access, .code = {move(local)}});
    }
    return questions;
  }

  static std::int64_t fault(Fault fault) { return -static_cast<std::int64_t>(fault); }

  TypeId root_ = 0;
  TypeId theirs_ = 0;
};

TEST_F(AmbiguityTest, CandidatesThatAgreeAreAsGoodAsOne) {
  candidate("s", {{"a", 8}, {"b", 16}});
  candidate("s___2", {{"a", 8}, {"b", 16}});
  candidate("s", {{"a", 8}, {"b", 16}});
  EXPECT_EQ(inEachOrder(offsetsOf({"0:0", "0:1"})), (std::vector<std::int64_t>{8, 16}));
}

TEST_F(AmbiguityTest, CandidatesThatDisagreeAreAnErrorThatNamesBoth) {
  candidate("s", {{"a", 8}});
  candidate("s", {{"a", 12}});
  const auto result = scenario_.ask(kOffset, root_, "0:0", 0);
  expectFailed(result, Fault::ambiguousValue);
  EXPECT_EQ(result.relocation.type.id, theirs_ + 1);
  EXPECT_EQ(result.relocation.other.id, theirs_ + 2);
  EXPECT_EQ(result.relocation.candidates, 2U);
}

TEST_F(AmbiguityTest, ACandidateThatLacksAFieldDropsOutForAllRelocations) {
  // Only the second has "b", so "a" is the second's; libbpf takes what comes first and may ask "a" before.
  candidate("s", {{"a", 8}});
  candidate("s", {{"a", 12}, {"b", 16}});
  EXPECT_EQ(inEachOrder(offsetsOf({"0:0", "0:1"})), (std::vector<std::int64_t>{12, 16}));
}

TEST_F(AmbiguityTest, DropsAddUp) {
  candidate("s", {{"a", 4}, {"b", 8}});
  candidate("s", {{"a", 12}, {"c", 16}});
  candidate("s", {{"a", 20}, {"b", 24}, {"c", 28}});
  EXPECT_EQ(inEachOrder(offsetsOf({"0:0", "0:1", "0:2"})), (std::vector<std::int64_t>{20, 24, 28}));
}

TEST_F(AmbiguityTest, CandidatesThatContradictEachOtherAreAnError) {
  // None has both.
  candidate("s", {{"a", 4}, {"b", 8}});
  candidate("s", {{"a", 4}, {"c", 16}});
  EXPECT_EQ(
      inEachOrder(offsetsOf({"0:0", "0:1", "0:2"})),
      (std::vector<std::int64_t>{4, fault(Fault::contradictoryCandidates), fault(Fault::contradictoryCandidates)}));
}

TEST_F(AmbiguityTest, AContradictionNamesBoth) {
  candidate("s", {{"b", 8}});
  candidate("s", {{"c", 16}});
  const auto results = scenario_.relocateAll(offsetsOf({"0:1", "0:2"}));
  EXPECT_EQ(results[0].relocation.type.id, theirs_ + 1);
  EXPECT_EQ(results[0].relocation.other.id, theirs_ + 2);
  EXPECT_EQ(results[1].relocation.type.id, theirs_ + 2);
  EXPECT_EQ(results[1].relocation.other.id, theirs_ + 1);
}

TEST_F(AmbiguityTest, WhatNoCandidateHasDropsNone) {
  candidate("s", {{"a", 8}});
  candidate("s", {{"a", 8}});
  EXPECT_EQ(inEachOrder(offsetsOf({"0:0", "0:2"})), (std::vector<std::int64_t>{8, fault(Fault::noMatch)}));
}

TEST_F(AmbiguityTest, WhetherSomethingExistsDropsNone) {
  candidate("s", {{"a", 8}});
  candidate("s", {{"a", 12}, {"b", 16}});
  auto questions = offsetsOf({"0:0"});
  questions.push_back({.kind = Kind::fieldExists, .type = root_, .access = "0:1", .code = {move(1)}});
  EXPECT_EQ(inEachOrder(questions), (std::vector<std::int64_t>{fault(Fault::ambiguousValue), 1}));
}

TEST_F(AmbiguityTest, QuestionsAreAnsweredByThoseThatAreLeft) {
  candidate("s", {{"a", 8}, {"c", 4}});
  candidate("s", {{"a", 12}, {"b", 16}});
  auto questions = offsetsOf({"0:0", "0:1"});
  questions.push_back({.kind = Kind::fieldExists, .type = root_, .access = "0:2", .code = {move(1)}});
  EXPECT_EQ(inEachOrder(questions), (std::vector<std::int64_t>{12, 16, 0}));
}

TEST_F(AmbiguityTest, WhatIsWrongInTheObjectStaysAnErrorWhenCandidatesDropOut) {
  candidate("s", {{"a", 8}});
  candidate("s", {{"a", 12}, {"b", 16}});
  auto questions = offsetsOf({"0:0", "0:1"});
  questions.push_back({.kind = Kind::fieldSigned, .type = root_, .access = "0", .code = {move(0)}});
  questions.push_back({.kind = Kind::typeIdLocal, .type = root_, .access = "0", .code = {move(0)}});
  EXPECT_EQ(inEachOrder(questions),
            (std::vector<std::int64_t>{12, 16, fault(Fault::kindNeedsNamedField), static_cast<std::int64_t>(root_)}));
}

TEST_F(AmbiguityTest, EachLocalTypeChoosesForItself) {
  candidate("s", {{"a", 8}});
  candidate("s", {{"a", 12}, {"b", 16}});
  const TypeId ours = object_.integer();
  const TypeId flavor = object_.structure("s___old", {{"a", ours}});
  std::vector<Question> questions = offsetsOf({"0:0", "0:1"});
  questions.push_back({.kind = kOffset, .type = flavor, .access = "0:0", .code = {move(0)}});
  EXPECT_EQ(inEachOrder(questions), (std::vector<std::int64_t>{12, 16, fault(Fault::ambiguousValue)}));
}

TEST_F(AmbiguityTest, SizesMayDisagreeWhereNothingIsLoaded) {
  kernel_.structure("s", {{"a", kernel_.unsignedInteger("u32", 4)}}, 64);
  kernel_.structure("s", {{"a", kernel_.unsignedInteger("u64", 8)}}, 64);
  expectResolved(scenario_.ask(kOffset, root_, "0:0", 0), 0);
  const auto result = scenario_.relocate(kOffset, root_, "0:0", load(BPF_W, 0));
  EXPECT_EQ(result.outcome(), Outcome::failed);
  EXPECT_EQ(result.fault(), Fault::ambiguousLoadSize);
  EXPECT_EQ(result.code.front(), load(BPF_W, 0));
  expectFailed(scenario_.ask(Kind::fieldByteSize, root_, "0:0", 4), Fault::ambiguousValue);
}

TEST_F(AmbiguityTest, LoadsThatNoCandidateAllowsArePoisonedWhateverTheirSizes) {
  kernel_.structure("s", {{"a", kernel_.integer("s8", 1)}}, 64);
  kernel_.structure("s", {{"a", kernel_.integer("s64", 8)}}, 64);
  expectPoisoned(scenario_.relocate(kOffset, root_, "0:0", load(BPF_W, 0)), Fault::loadSizeChanged);
}

TEST_F(AmbiguityTest, TypeIdsOfSeveralCandidatesAreAmbiguous) {
  candidate("s", {{"a", 8}});
  candidate("s", {{"a", 8}});
  expectFailed(scenario_.ask(Kind::typeIdTarget, root_, "0", 0), Fault::ambiguousValue);
  expectResolved(scenario_.ask(Kind::typeExists, root_, "0", 1), 1);
  expectResolved(scenario_.ask(Kind::typeSize, root_, "0", 12), 64);
}

TEST_F(AmbiguityTest, TypesThatMatchAreFoundAmongThoseThatDoNot) {
  candidate("s", {{"a", 0}});
  candidate("s", {{"a", 0}, {"b", 4}, {"c", 8}});
  expectResolved(scenario_.ask(Kind::typeMatches, root_, "0", 1), 1);
}

TEST_F(AmbiguityTest, EnumeratorsMustAgreeToo) {
  const TypeId ours = object_.enumeration("e", {{"A", 1}, {"B", 2}});
  kernel_.enumeration("e", {{"A", 5}});
  kernel_.enumeration("e", {{"A", 6}, {"B", 7}});
  const std::vector<Question> one = {{.kind = Kind::enumeratorValue, .type = ours, .access = "0", .code = {move(1)}}};
  EXPECT_EQ(inEachOrder(one), std::vector<std::int64_t>{fault(Fault::ambiguousValue)});
  const std::vector<Question> both = {{.kind = Kind::enumeratorValue, .type = ours, .access = "0", .code = {move(1)}},
                                      {.kind = Kind::enumeratorValue, .type = ours, .access = "1", .code = {move(2)}}};
  EXPECT_EQ(inEachOrder(both), (std::vector<std::int64_t>{6, 7}));
}

TEST_F(AmbiguityTest, ACandidateThatIsAnErrorDoesNotHideWhatTheNextOneLacks) {
  const TypeId byte = kernel_.integer("s8", 1);
  kernel_.structure("s", {{"a", theirs_, 0, 64}, {"b", byte, 4, 62}}, 64);
  candidate("s", {{"a", 8}, {"b", 16}});
  candidate("s", {{"a", 20}});
  EXPECT_EQ(inEachOrder(offsetsOf({"0:0", "0:1"})), (std::vector<std::int64_t>{8, fault(Fault::bitfieldTooWide)}));
}

TEST_F(AmbiguityTest, OneQuestionOfManyInstructionsIsAnsweredAtEach) {
  candidate("s", {{"a", 8}});
  const Question good{.kind = kOffset, .type = root_, .access = "0:0", .code = {move(0)}};
  const Question bad{.kind = kOffset, .type = root_, .access = "0:0", .code = {move(1)}};
  const auto results = scenario_.relocateAll({good, bad, good});
  expectResolved(results[0], 8);
  expectFailed(results[1], Fault::instructionValue);
  expectResolved(results[2], 8);
}

} // namespace
} // namespace btfd::core
