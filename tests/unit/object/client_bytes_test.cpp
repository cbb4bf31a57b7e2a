#include "object/client_bytes.h"
#include "test_support/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <sys/socket.h>

namespace btfd::object {
namespace {

using test_support::memfdOf;
using test_support::TemporaryDirectory;
using test_support::writeFile;
using testing::HasSubstr;

constexpr std::uint64_t kLimit = 1024;

UniqueFd open(const std::string& path, int flags) {
  return UniqueFd(::open(path.c_str(), flags | O_CLOEXEC));
}

std::string textOf(const ClientBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.bytes().data()), bytes.bytes().size()}; // NOLINT
}

int errorOf(BorrowedFd file, std::uint64_t limit = kLimit) {
  const auto bytes = ClientBytes::read(file, limit);
  return bytes ? 0 : bytes.error().code;
}

TEST(ClientBytes, ARegularFileIsCopied) {
  const TemporaryDirectory directory;
  writeFile(directory / "object", "before");
  const auto bytes = ClientBytes::read(open(directory / "object", O_RDONLY), kLimit);
  ASSERT_TRUE(bytes) << bytes.error().message;
  writeFile(directory / "object", "after!");
  EXPECT_EQ(textOf(*bytes), "before");
}

TEST(ClientBytes, TheDescriptorsOffsetIsOfNoImportanceAndStays) {
  const UniqueFd memfd = memfdOf("content"); // its offset is at the end
  const auto bytes = ClientBytes::read(memfd, kLimit);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(textOf(*bytes), "content");
  EXPECT_EQ(::lseek(memfd.get(), 0, SEEK_CUR), 7);
}

TEST(ClientBytes, AMemfdThatIsNotSealedIsCopied) {
  const UniqueFd memfd = memfdOf("before");
  const auto bytes = ClientBytes::read(memfd, kLimit);
  ASSERT_TRUE(bytes);
  ASSERT_EQ(::pwrite(memfd.get(), "after!", 6, 0), 6);
  ASSERT_EQ(::ftruncate(memfd.get(), 0), 0);
  EXPECT_EQ(textOf(*bytes), "before");
}

TEST(ClientBytes, ASealedMemfdIsMapped) {
  const UniqueFd memfd = memfdOf("sealed", F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
  const auto bytes = ClientBytes::read(memfd, kLimit);
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_EQ(textOf(*bytes), "sealed");
  const auto maps = test_support::readFile("/proc/self/maps");
  const std::string text(reinterpret_cast<const char*>(maps.data()), maps.size()); // NOLINT
  EXPECT_THAT(text, HasSubstr("memfd:btfd-test"));
}

TEST(ClientBytes, SealsAgainstWritingAloneAreNotEnoughToMap) {
  // It can be shrunk, and then reading the mapping would be SIGBUS.
  const UniqueFd memfd = memfdOf("shrinks", F_SEAL_WRITE);
  const auto bytes = ClientBytes::read(memfd, kLimit);
  ASSERT_TRUE(bytes);
  ASSERT_EQ(::ftruncate(memfd.get(), 0), 0);
  EXPECT_EQ(textOf(*bytes), "shrinks");
}

TEST(ClientBytes, WhatIsNoRegularFileIsRefused) {
  EXPECT_EQ(errorOf(open("/", O_RDONLY)), EISDIR);
  EXPECT_EQ(errorOf(open("/dev/null", O_RDONLY)), EINVAL);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd reading(ends[0]);
  const UniqueFd writing(ends[1]);
  EXPECT_EQ(errorOf(reading), ESPIPE);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(errorOf(socket), ESPIPE);
}

TEST(ClientBytes, ADescriptorThatIsNotOpenIsEbadf) {
  EXPECT_EQ(errorOf(BorrowedFd(UniqueFd())), EBADF);
}

TEST(ClientBytes, ADescriptorThatCannotBeReadIsRefusedWithTheReason) {
  const TemporaryDirectory directory;
  writeFile(directory / "object", "content");
  for (const int flags : {O_PATH, O_WRONLY}) {
    const auto bytes = ClientBytes::read(open(directory / "object", flags), kLimit);
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().code, EBADF);
    EXPECT_THAT(bytes.error().message, HasSubstr("not open for reading"));
  }
}

TEST(ClientBytes, AnEmptyFileIsEnodata) {
  EXPECT_EQ(errorOf(memfdOf("")), ENODATA);
}

TEST(ClientBytes, TheLimitIsTheLargestSizeThatIsTaken) {
  EXPECT_EQ(errorOf(memfdOf("12345"), 5), 0);
  const auto bytes = ClientBytes::read(memfdOf("123456"), 5);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, EFBIG);
  EXPECT_THAT(bytes.error().message, HasSubstr("limits.objectBytes"));
}

TEST(ClientBytes, AHugeSparseFileIsRefusedWithoutBeingRead) {
  const UniqueFd memfd = memfdOf("x");
  ASSERT_EQ(::ftruncate(memfd.get(), off_t{1} << 40), 0);
  EXPECT_EQ(errorOf(memfd), EFBIG);
}

TEST(ClientBytes, TheDigestIsSha256InHexadecimal) {
  // FIPS 180-2, appendix B.1.
  const auto bytes = ClientBytes::read(memfdOf("abc"), kLimit);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->digest(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(ClientBytes, CanBeMoved) {
  auto bytes = ClientBytes::read(memfdOf("content"), kLimit);
  ASSERT_TRUE(bytes);
  const auto* before = bytes->bytes().data();
  ClientBytes moved(std::move(*bytes));
  EXPECT_EQ(moved.bytes().data(), before);
  auto other = ClientBytes::read(memfdOf("other"), kLimit);
  *other = std::move(moved);
  EXPECT_EQ(textOf(*other), "content");
}

} // namespace
} // namespace btfd::object
