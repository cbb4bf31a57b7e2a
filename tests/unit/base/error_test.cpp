#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace btfd {
namespace {

TEST(Error, ErrnoErrorsSayWhatFailedAndWhy) {
  const Error error = Error::fromErrno("cannot open /x", ENOENT);
  EXPECT_EQ(error.message, "cannot open /x: No such file or directory");
  EXPECT_EQ(error.code, ENOENT);
}

TEST(Error, ContextGoesInFrontAndKeepsTheCode) {
  const Error error = Error::fromErrno("cannot open /x", EACCES).within("object 'probe'").within("load");
  EXPECT_EQ(error.message, "load: object 'probe': cannot open /x: Permission denied");
  EXPECT_EQ(error.code, EACCES);
}

TEST(Error, FailMakesAResultWithoutValue) {
  const Result<int> plain = fail("no");
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().message, "no");
  EXPECT_EQ(plain.error().code, 0);
  const Result<void> withErrno = failErrno("cannot read", EIO);
  ASSERT_FALSE(withErrno);
  EXPECT_EQ(withErrno.error().code, EIO);
}

} // namespace
} // namespace btfd
