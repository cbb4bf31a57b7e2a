#include "btf/name_index.h"

#include <gtest/gtest.h>

#include <string>

/// libbpf's own rule (relo_core.c): not in its public headers, but in its archive.
extern "C" std::size_t bpf_core_essential_name_len(const char* name);

namespace btfd::btf {
namespace {

TEST(EssentialName, IsTheNameUnlessThereIsAFlavor) {
  EXPECT_EQ(essentialName("task_struct"), "task_struct");
  EXPECT_EQ(essentialName(""), "");
  EXPECT_EQ(essentialName("a"), "a");
  EXPECT_EQ(essentialName("a__b"), "a__b");
}

TEST(EssentialName, EndsBeforeTheFlavor) {
  EXPECT_EQ(essentialName("task_struct___v2"), "task_struct");
  EXPECT_EQ(essentialName("a___b"), "a");
}

TEST(EssentialName, OfSeveralFlavorsOnlyTheLastGoes) {
  EXPECT_EQ(essentialName("task___old___v2"), "task___old");
}

TEST(EssentialName, AFlavorNeedsNamesOnBothSides) {
  EXPECT_EQ(essentialName("___v2"), "___v2");
  EXPECT_EQ(essentialName("task___"), "task___");
  EXPECT_EQ(essentialName("___"), "___");
}

TEST(EssentialName, FourUnderscoresSeparateNothing) {
  EXPECT_EQ(essentialName("task____v2"), "task____v2");
  EXPECT_EQ(essentialName("task_____v2"), "task_____v2");
}

TEST(EssentialName, LeadingUnderscoresBelongToTheName) {
  EXPECT_EQ(essentialName("___x___y"), "___x");
  EXPECT_EQ(essentialName("_x___y"), "_x");
}

TEST(EssentialName, TheSeparatorIsFoundWhereverItStands) {
  for (std::size_t before = 1; before < 40; ++before) {
    const std::string name = std::string(before, 'x') + "___v2";
    EXPECT_EQ(essentialName(name).size(), before) << name;
    EXPECT_EQ(essentialName(std::string(before, 'x') + "__v2_a").size(), before + 6);
    // What only looks like it: the same bits but one.
    EXPECT_EQ(essentialName(std::string(before, 'x') + "_\xdf_v2").size(), before + 5);
  }
}

/// Every word of up to nine letters over {a, _}: all the ways in which underscores can stand.
TEST(EssentialName, AgreesWithLibbpfOnAllShortNames) {
  for (std::size_t length = 0; length <= 9; ++length) {
    for (unsigned pattern = 0; pattern < 1U << length; ++pattern) {
      std::string name;
      for (std::size_t i = 0; i < length; ++i) {
        name += (pattern >> i & 1U) != 0 ? '_' : 'a';
      }
      ASSERT_EQ(essentialName(name).size(), bpf_core_essential_name_len(name.c_str())) << name;
    }
  }
}

} // namespace
} // namespace btfd::btf
