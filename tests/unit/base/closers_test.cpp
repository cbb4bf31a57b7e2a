#include "base/closers.h"
#include "test_support/lingering_socket.h"

#include <gtest/gtest.h>

namespace btfd {
namespace {

TEST(Closers, AUserWhoseClosesDoNotEndHoldsUpNoOther) {
  Closers closers;
  ASSERT_TRUE(closers.start());
  test_support::LingeringSocket socket;
  closers.ofUser(1).close(socket.take().release());
  EXPECT_EQ(closers.ofUser(1).pending(), 1U);
  EXPECT_EQ(closers.ofUser(2).pending(), 0U);
  EXPECT_EQ(closers.forSockets().pending(), 0U);
  socket.endClose();
}

TEST(Closers, AUserHasOneOfTheirOwn) {
  Closers closers;
  ASSERT_TRUE(closers.start());
  Closer& first = closers.ofUser(1);
  EXPECT_TRUE(first.started());
  EXPECT_NE(&first, &closers.ofUser(2));
  EXPECT_EQ(&first, &closers.ofUser(1));
  EXPECT_NE(&first, &closers.forSockets());
}

} // namespace
} // namespace btfd
