#include "btfctl/table.h"

#include <gmock/gmock.h>

namespace btfd::btfctl {
namespace {

TEST(Table, AlignsColumnsByTheirWidestCell) {
  Table table({{"ID", Align::Right}, {"NAME"}, {"N", Align::Right}});
  table.add({"7", "execsnoop", "2"});
  table.add({"119", "x", "10"});
  EXPECT_EQ(table.render(0), " ID  NAME        N\n"
                             "  7  execsnoop   2\n"
                             "119  x          10\n");
}

TEST(Table, EmptyCellsAreShownAsDashesAndNoLineEndsInSpaces) {
  Table table({{"A"}, {"LONGER"}});
  table.add({"", ""});
  table.add({"a", "b"});
  EXPECT_EQ(table.render(0), "A  LONGER\n-  -\na  b\n");
}

TEST(Table, CountsCodePointsNotBytes) {
  Table table({{"NAME"}, {"B"}});
  table.add({"n\xc3\xa4me", "1"}); // "näme"
  EXPECT_EQ(table.render(0), "NAME  B\nn\xc3\xa4me  1\n");
}

TEST(Table, CutsTheWidestElasticColumnToFit) {
  Table table({{"ID"}, {"NAME", Align::Left, true}, {"TARGET", Align::Left, true}});
  table.add({"1", "0123456789", "0123456789abcdefghij"});
  EXPECT_EQ(table.render(30), "ID  NAME        TARGET\n"
                              "1   0123456789  0123456789a...\n");
  EXPECT_EQ(table.render(24), "ID  NAME       TARGET\n"
                              "1   012345...  012345...\n");
}

TEST(Table, KeepsTitlesAndColumnsThatAreNotElasticWhole) {
  Table table({{"DIGEST"}, {"DESCRIPTION", Align::Left, true}});
  table.add({"0123456789abcdef", "0123456789abcdef"});
  EXPECT_EQ(table.render(10), "DIGEST            DESCRIPTION\n"
                              "0123456789abcdef  01234567...\n");
}

TEST(Table, WithoutAWidthNothingIsCut) {
  Table table({{"T", Align::Left, true}});
  table.add({std::string(500, 'x')});
  EXPECT_EQ(table.render(0), "T\n" + std::string(500, 'x') + "\n");
}

} // namespace
} // namespace btfd::btfctl
