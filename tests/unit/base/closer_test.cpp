#include "base/closer.h"
#include "test_support/files.h"
#include "test_support/lingering_socket.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

namespace btfd {
namespace {

using test_support::CloseWatch;
using test_support::LingeringSocket;

bool isOpen(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

/// Waits until only `left` are left to be closed, but not forever.
bool becomesIdle(const Closer& closer, std::size_t left = 0, int milliseconds = 20'000) {
  for (int attempt = 0; attempt < milliseconds && closer.pending() > left; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return closer.pending() == left;
}

TEST(Closer, ClosesInThreadsOfItsOwn) {
  Closer closer;
  ASSERT_TRUE(closer.start());
  CloseWatch watch;
  closer.close(watch.take().release());
  EXPECT_TRUE(watch.becomesClosed());
  EXPECT_TRUE(becomesIdle(closer));
  EXPECT_EQ(closer.threads(), 1U);
}

TEST(Closer, ClosesInPlaceBeforeItIsStarted) {
  Closer closer;
  CloseWatch watch;
  closer.close(watch.take().release());
  EXPECT_TRUE(watch.closed());
  EXPECT_EQ(closer.threads(), 0U);
}

TEST(Closer, ClosesInPlaceWhatCannotBlock) {
  Closer closer;
  ASSERT_TRUE(closer.start());
  const int number = test_support::memfdOf("sealed", F_SEAL_WRITE).release();
  closer.close(number);
  EXPECT_FALSE(isOpen(number));
  EXPECT_EQ(closer.threads(), 0U);
}

TEST(Closer, ACloseThatBlocksHoldsUpNeitherTheCallerNorOthers) {
  Closer closer;
  ASSERT_TRUE(closer.start());
  LingeringSocket socket;
  closer.close(socket.take().release());
  CloseWatch watch;
  closer.close(watch.take().release());
  EXPECT_TRUE(watch.becomesClosed());
  EXPECT_TRUE(becomesIdle(closer, 1));
  socket.endClose();
  EXPECT_TRUE(becomesIdle(closer));
}

TEST(Closer, ThreadsAreUsedAgain) {
  Closer closer;
  ASSERT_TRUE(closer.start());
  for (int i = 0; i < 100; ++i) {
    CloseWatch watch;
    closer.close(watch.take().release());
    ASSERT_TRUE(becomesIdle(closer));
  }
  EXPECT_EQ(closer.threads(), 1U);
}

TEST(Closer, SocketsThatLingerDoNotUseUpItsThreads) {
  Closer closer(2);
  ASSERT_TRUE(closer.start());
  std::vector<LingeringSocket> sockets(8);
  for (LingeringSocket& socket : sockets) {
    closer.close(socket.take().release());
  }
  for (int attempt = 0; attempt < 20'000 && closer.pending() > 2; ++attempt) {
    closer.close(CloseWatch().take().release());
    becomesIdle(closer, 2, 1);
  }
  EXPECT_LE(closer.pending(), 2U);
  EXPECT_EQ(closer.threads(), 2U);
}

class CloserOfMany : public testing::Test {
 protected:
  static constexpr std::size_t kMany = 2'000; ///< More than the pipe takes.

  void SetUp() override {
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < kMany + 100) {
      GTEST_SKIP() << "needs " << kMany + 100 << " file descriptors";
    }
  }
};

TEST_F(CloserOfMany, WhatThePipeRefusesIsKept) {
  Closer closer(0);
  ASSERT_TRUE(closer.start());
  CloseWatch watch;
  std::vector<UniqueFd> copies; // whose numbers this Closer does not come to close
  for (std::size_t i = 0; i < kMany; ++i) {
    copies.push_back(watch.get().duplicate());
    closer.close(copies.back().get());
  }
  EXPECT_EQ(closer.pending(), kMany);
  EXPECT_GT(closer.refused(), 0U);
}

TEST_F(CloserOfMany, WhatWasRefusedIsTriedAgain) {
  Closer closer(1);
  ASSERT_TRUE(closer.start());
  CloseWatch watch;
  for (std::size_t i = 0; i < kMany; ++i) {
    closer.close(watch.get().duplicate().release());
  }
  closer.close(watch.take().release());
  for (int attempt = 0; attempt < 20'000 && closer.refused() > 0; ++attempt) {
    closer.close(CloseWatch().take().release());
    becomesIdle(closer, 0, 1);
  }
  EXPECT_TRUE(watch.becomesClosed());
  EXPECT_TRUE(becomesIdle(closer));
}

TEST(Closer, ItsEndDoesNotWait) {
  LingeringSocket socket;
  {
    Closer closer;
    ASSERT_TRUE(closer.start());
    closer.close(socket.take().release());
    ASSERT_EQ(closer.pending(), 1U);
  }
  socket.endClose();
}

TEST(CloserDeathTest, TheEndOfTheProcessDoesNotWait) {
  EXPECT_EXIT(
      {
        Closer closer;
        static_cast<void>(closer.start());
        LingeringSocket socket;
        closer.close(socket.take().release());
        std::exit(closer.pending() == 1 ? 7 : 1);
      },
      testing::ExitedWithCode(7), "");
}

TEST(Closer, ForkingIsPossibleWhileACloseBlocks) {
  Closer closer;
  ASSERT_TRUE(closer.start());
  LingeringSocket socket;
  closer.close(socket.take().release());
  const pid_t child = ::fork();
  if (child == 0) {
    const std::vector<char> memory(1'000'000, 'x'); // no thread has left a lock behind
    ::_exit(memory.back() == 'x' ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  socket.endClose();
  EXPECT_TRUE(becomesIdle(closer));
}

TEST(Closer, IsKeptByADescriptorWhereverItGoes) {
  Closer closer;
  CloseWatch watch;
  UniqueFd first(watch.take().release(), &closer);
  UniqueFd second(std::move(first));
  EXPECT_EQ(first.closer(), nullptr); // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(second.closer(), &closer);
  UniqueFd third;
  third = std::move(second);
  EXPECT_EQ(third.closer(), &closer);
  const UniqueFd copy = BorrowedFd(third).duplicate();
  EXPECT_EQ(copy.closer(), &closer);
  EXPECT_NE(copy.get(), third.get());
  third.reset();
  EXPECT_EQ(third.closer(), nullptr);
}

} // namespace
} // namespace btfd
