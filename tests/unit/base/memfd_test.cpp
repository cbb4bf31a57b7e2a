#include "base/memfd.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace btfd {
namespace {

constexpr std::array kContent{std::byte{1}, std::byte{2}, std::byte{3}};

TEST(SealedMemfd, HoldsItsContentAndCannotBeChanged) {
  const auto memfd = sealedMemfd("test", kContent);
  ASSERT_TRUE(memfd) << memfd.error().message;
  std::array<std::byte, 4> read{};
  ASSERT_EQ(::pread(memfd->get(), read.data(), read.size(), 0), 3);
  EXPECT_EQ(read[2], std::byte{3});
  EXPECT_EQ(::pwrite(memfd->get(), read.data(), 1, 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(memfd->get(), 0), -1);
  EXPECT_EQ(::ftruncate(memfd->get(), 4), -1);
  EXPECT_EQ(::fcntl(memfd->get(), F_ADD_SEALS, 0), -1); // F_SEAL_SEAL
  EXPECT_TRUE(isSealed(*memfd));
}

TEST(SealedMemfd, MayBeEmpty) {
  const auto memfd = sealedMemfd("test", {});
  ASSERT_TRUE(memfd) << memfd.error().message;
  struct stat status{};
  ASSERT_EQ(::fstat(memfd->get(), &status), 0);
  EXPECT_EQ(status.st_size, 0);
}

TEST(IsSealed, SaysNoToWhatMayStillChange) {
  const UniqueFd memfd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_FALSE(isSealed(memfd));
  ASSERT_EQ(::fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK), 0);
  EXPECT_FALSE(isSealed(memfd)); // it may grow
  ASSERT_EQ(::fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  EXPECT_TRUE(isSealed(memfd));
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(isSealed(null));
}

} // namespace
} // namespace btfd
