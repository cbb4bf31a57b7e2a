#include "base/text.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace btfd {
namespace {

TEST(Text, LettersOfAllScriptsAreShowable) {
  for (const char* text : {"", "plain text", "prüfung eins", "Ж", "日本", "عربي", "😀"}) {
    EXPECT_TRUE(isShowable(text)) << text;
    EXPECT_EQ(escaped(text), text);
  }
}

TEST(Text, ControlCharactersAreEscaped) {
  EXPECT_EQ(escaped("a\nb\x1b[2J\x7f"), "a\\x0ab\\x1b[2J\\x7f");
  EXPECT_EQ(escaped(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(escaped("\u009b2J"), "\\xc2\\x9b2J") << "ESC [ in one character";
  EXPECT_FALSE(isShowable("a\tb"));
}

TEST(Text, FormatCharactersAreEscaped) {
  // Right-to-left override, isolates, zero-width space, byte order mark, line separator, soft hyphen, a tag.
  for (const char* text :
       {"\u202e", "\u2066", "\u2069", "\u200b", "\u200f", "\ufeff", "\u2028", "\u00ad", "\U000e0041", "\u061c"}) {
    EXPECT_FALSE(isShowable(text)) << escaped(text);
    EXPECT_TRUE(isShowable(escaped(text)));
  }
  EXPECT_EQ(escaped("a\u202eb"), "a\\xe2\\x80\\xaeb");
}

TEST(Text, WhatIsNoUtf8IsEscapedByteByByte) {
  EXPECT_EQ(escaped("a\xff"
                    "b"),
            "a\\xffb");
  EXPECT_EQ(escaped("\xe2\x80"), "\\xe2\\x80") << "cut off";
  EXPECT_EQ(escaped("\xc0\xaf"), "\\xc0\\xaf") << "a form that is too long";
  EXPECT_EQ(escaped("\xc3("), "\\xc3(");
}

TEST(ToHex, HasTwoDigitsForEachByte) {
  EXPECT_EQ(toHex({}), "");
  constexpr std::array kBytes{std::byte{0x00}, std::byte{0x0f}, std::byte{0xa7}, std::byte{0xff}};
  EXPECT_EQ(toHex(kBytes), "000fa7ff");
}

TEST(Joined, PutsCommasBetween) {
  EXPECT_EQ(joined(std::vector<std::string>{}), "");
  EXPECT_EQ(joined(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(joined(std::vector<std::string_view>{"a", "b", "c"}), "a, b, c");
}

TEST(QuotedName, CutsWhatIsTooLongToRead) {
  EXPECT_EQ(quotedName("name"), "'name'");
  EXPECT_EQ(quotedName(std::string(256, 'n')), "'" + std::string(256, 'n') + "'");
  EXPECT_EQ(quotedName(std::string(257, 'n')), "'" + std::string(256, 'n') + "...'");
}

TEST(Showable, IsEscapedAndCutBetweenCharacters) {
  EXPECT_EQ(showable("short \x1b[2J", 20), "short \\x1b[2J");
  EXPECT_EQ(showable("abcdef", 6), "abcdef");
  EXPECT_EQ(showable("abcdefg", 6), "abcdef...");
  EXPECT_EQ(showable("ab\xc3\xbc", 3), "ab...");
  EXPECT_EQ(showable("ab\x1b", 5), "ab...");
  EXPECT_EQ(showable("", 5), "");
}

} // namespace
} // namespace btfd
