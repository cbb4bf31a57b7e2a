#include "test_support.h"
#include "varlink/listen.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>

namespace btfd::varlink {
namespace {

class ListenAt : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "btfd-listen-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    path_ = directory_ + "/socket";
  }

  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
  std::string path_;
};

TEST_F(ListenAt, HasTheModeAskedForWhateverTheUmask) {
  const mode_t old = ::umask(0077);
  const auto socket = listenAt(path_, 0666, ::getgid());
  ::umask(old);
  ASSERT_TRUE(socket) << socket.error().message;
  struct stat status{};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0666U);
  EXPECT_EQ(status.st_gid, ::getgid());
  EXPECT_TRUE(Client::connect(path_));
}

TEST_F(ListenAt, ReplacesASocketThatNobodyListensOn) {
  ASSERT_TRUE(listenAt(path_, 0600)); // Closed at once, but the file stays.
  ASSERT_FALSE(Client::connect(path_));
  const auto again = listenAt(path_, 0600);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(Client::connect(path_));
}

TEST_F(ListenAt, RefusesASocketThatIsInUse) {
  const auto first = listenAt(path_, 0600);
  ASSERT_TRUE(first);
  const auto second = listenAt(path_, 0600);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, EADDRINUSE);
  EXPECT_TRUE(Client::connect(path_)) << "the first is undisturbed";
}

TEST_F(ListenAt, RefusesAFileThatIsNoSocket) {
  std::ofstream(path_) << "precious";
  const auto socket = listenAt(path_, 0600);
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code, EADDRINUSE);
  EXPECT_TRUE(std::filesystem::is_regular_file(path_));
}

TEST_F(ListenAt, APathThatIsTooLongIsAnError) {
  const auto socket = listenAt(directory_ + "/" + std::string(200, 'x'), 0600);
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code, ENAMETOOLONG);
}

} // namespace
} // namespace btfd::varlink
