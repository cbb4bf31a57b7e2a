#include "service/inline_object.h"
#include "test_support/files.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace btfd::service {
namespace {

std::string decoded(std::string_view base64) {
  const auto memfd = decodeInlineObject(base64);
  EXPECT_TRUE(memfd) << base64 << ": " << memfd.error().message;
  if (!memfd) {
    return "(error)";
  }
  const auto bytes = test_support::readFile("/proc/self/fd/" + std::to_string(memfd->get()));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; // NOLINT
}

TEST(InlineObject, IsDecodedWithEachPadding) {
  // RFC 4648, section 10.
  EXPECT_EQ(decoded("Zg=="), "f");
  EXPECT_EQ(decoded("Zm8="), "fo");
  EXPECT_EQ(decoded("Zm9v"), "foo");
  EXPECT_EQ(decoded("Zm9vYmFy"), "foobar");
  EXPECT_EQ(decoded("+/+/"), "\xfb\xff\xbf");
  EXPECT_EQ(decoded("AAAA"), std::string(3, '\0'));
}

TEST(InlineObject, IsSealed) {
  const auto memfd = decodeInlineObject("Zm9v");
  ASSERT_TRUE(memfd);
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  EXPECT_EQ(::fcntl(memfd->get(), F_GET_SEALS) & kSeals, kSeals);
  EXPECT_NE(::fcntl(memfd->get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(InlineObject, WhatIsNoBase64IsEinval) {
  for (const std::string_view text :
       {"", "Z", "Zg", "Zg=", "Zm9", "Zm9v\n", "Zm9 ", " Zm9vYmF", "Zm9v\nYmF", "Zm9v!!!!", "Zm-_",
        "====", "Z===", "Zg==Zg==", "Z=g=", "AAAA----", "=AAA", "AA=A", "Zm9vYm\xc3\xa4"}) {
    const auto memfd = decodeInlineObject(text);
    EXPECT_FALSE(memfd) << '"' << text << '"';
    if (!memfd) {
      EXPECT_EQ(memfd.error().code, EINVAL) << text;
    }
  }
}

TEST(InlineObject, ANulIsNoBase64) {
  EXPECT_FALSE(decodeInlineObject(std::string_view("AA\0A", 4)));
  EXPECT_FALSE(decodeInlineObject(std::string_view("AAAA\0\0\0\0", 8)));
}

TEST(InlineObject, MayBeLarge) {
  EXPECT_EQ(decoded(std::string(std::size_t{4} << 20U, 'A')).size(), std::size_t{3} << 20U);
}

} // namespace
} // namespace btfd::service
