#include "btfctl/text.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include <time.h>

namespace btfd::btfctl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Printable, EscapesControlCharacters) {
  EXPECT_EQ(printable("a\x1b[2J\n\x7f"), "a\\x1b[2J\\x0a\\x7f");
  EXPECT_EQ(printable("a\n\tb\r", Lines::Keep), "a\n\tb\\x0d");
}

TEST(Printable, EscapesC1ControlCharactersButNoOtherLetters) {
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b2J"); // U+009B, which is ESC [ in one character
  EXPECT_EQ(printable("n\xc3\xa4me \xc2\xb5"), "n\xc3\xa4me \xc2\xb5");
}

TEST(Printable, EscapesWhatTurnsTheDirectionOfText) {
  EXPECT_EQ(printable("a\u202eb\u2028c", Lines::Keep), "a\\xe2\\x80\\xaeb\\xe2\\x80\\xa8c");
}

TEST(Shortened, EndsInDotsAndNeverInsideALetter) {
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdefg", 6), "abc...");
  EXPECT_EQ(shortened("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 4), "\xc3\xa4...");
  EXPECT_EQ(shortened("abcdefg", 2), "..");
}

TEST(Indented, IndentsEachLineAndEndsTheLast) {
  EXPECT_EQ(indented("a\n\nb", 2), "  a\n  \n  b\n");
  EXPECT_EQ(indented("a\n", 2), "  a\n");
  EXPECT_EQ(indented("", 2), "");
}

TEST(JoinedWithOr, ReadsAsAList) {
  EXPECT_EQ(joinedWithOr({}), "");
  EXPECT_EQ(joinedWithOr(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(joinedWithOr(std::vector<std::string>{"a", "b", "c"}), "a, b or c");
}

TEST(NearMisses, FindsWhatSomebodyMayHaveMeantBestFirst) {
  const std::vector<std::string> names{"on_exit", "on_exec", "ON_EXEC", "unrelated", "on_exec"};
  EXPECT_THAT(nearMisses("on_exe", names), ElementsAre("ON_EXEC", "on_exec", "on_exit"));
  EXPECT_THAT(nearMisses("relate", names), IsEmpty()) << "three letters are too many for a word of six";
  EXPECT_THAT(nearMisses("zzz", names), IsEmpty());
  EXPECT_EQ(didYouMean("on_exiT", names), "; did you mean on_exit, ON_EXEC or on_exec?");
  EXPECT_EQ(didYouMean("zzz", names), "");
}

TEST(LocalTime, FollowsTheTimeZone) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  EXPECT_EQ(localTime(1'700'000'000'000'042), "2023-11-14 22:13:20");
  EXPECT_EQ(localTime(1'700'000'000'000'042, true), "2023-11-14 22:13:20.000042");
  ::setenv("TZ", "XYZ-1", 1);
  ::tzset();
  EXPECT_EQ(localTime(1'700'000'000'000'042), "2023-11-14 23:13:20");
}

TEST(HumanUnits, SuitTheSize) {
  EXPECT_EQ(humanDuration(999), "999 us");
  EXPECT_EQ(humanDuration(5800), "5.8 ms");
  EXPECT_EQ(humanDuration(1'250'000), "1.3 s");
  EXPECT_EQ(humanBytes(1023), "1023 B");
  EXPECT_EQ(humanBytes(4096), "4.0 KiB");
  EXPECT_EQ(humanBytes(5'767'168), "5.5 MiB");
}

TEST(UserName, UnknownUsersAreNumbers) {
  EXPECT_EQ(userName(0), "root (0)");
  EXPECT_EQ(userName(3'999'999'999), "3999999999");
}

} // namespace
} // namespace btfd::btfctl
