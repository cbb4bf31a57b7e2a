#include "base/unique_fd.h"

#include <gtest/gtest.h>

#include <utility>

#include <fcntl.h>

namespace btfd {
namespace {

UniqueFd open() {
  return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

bool isOpen(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

TEST(UniqueFd, IsEmptyAtFirst) {
  const UniqueFd fd;
  EXPECT_FALSE(fd);
  EXPECT_LT(fd.get(), 0);
}

TEST(UniqueFd, DescriptorZeroIsOneToo) {
  UniqueFd fd(0);
  EXPECT_TRUE(fd);
  static_cast<void>(fd.release());
}

TEST(UniqueFd, ClosesAtItsEnd) {
  int number = -1;
  {
    const UniqueFd fd = open();
    number = fd.get();
    ASSERT_TRUE(isOpen(number));
  }
  EXPECT_FALSE(isOpen(number));
}

TEST(UniqueFd, MovingLeavesNothingBehind) {
  UniqueFd from = open();
  const int number = from.get();
  const UniqueFd to = std::move(from);
  EXPECT_FALSE(from); // NOLINT(bugprone-use-after-move): that is the point
  EXPECT_EQ(to.get(), number);
  EXPECT_TRUE(isOpen(number));
}

TEST(UniqueFd, MoveAssignmentClosesWhatWasThere) {
  UniqueFd first = open();
  UniqueFd second = open();
  const int closed = first.get();
  const int kept = second.get();
  first = std::move(second);
  EXPECT_FALSE(isOpen(closed));
  EXPECT_EQ(first.get(), kept);
  EXPECT_TRUE(isOpen(kept));
}

TEST(UniqueFd, MoveAssignmentToItselfKeepsIt) {
  UniqueFd fd = open();
  UniqueFd& same = fd;
  fd = std::move(same);
  EXPECT_TRUE(isOpen(fd.get()));
}

TEST(UniqueFd, ResetClosesAndReplaces) {
  UniqueFd fd = open();
  const int closed = fd.get();
  UniqueFd other = open();
  const int kept = other.get();
  fd.reset(other.release());
  EXPECT_FALSE(isOpen(closed));
  EXPECT_EQ(fd.get(), kept);
  fd.reset();
  EXPECT_FALSE(fd);
  EXPECT_FALSE(isOpen(kept));
}

TEST(UniqueFd, ReleaseLeavesItOpen) {
  UniqueFd fd = open();
  const UniqueFd taken(fd.release());
  EXPECT_FALSE(fd);
  EXPECT_TRUE(isOpen(taken.get()));
}

TEST(BorrowedFd, NeitherKeepsNorCloses) {
  const UniqueFd owner = open();
  {
    const BorrowedFd borrowed = owner;
    EXPECT_EQ(borrowed.get(), owner.get());
    EXPECT_TRUE(borrowed);
  }
  EXPECT_TRUE(isOpen(owner.get()));
  EXPECT_FALSE(BorrowedFd(UniqueFd()));
}

} // namespace
} // namespace btfd
