#include "config/config.h"
#include "config/detail/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace btfd::config {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Load : public testing::Test {
 protected:
  Load() {
    std::string pattern = testing::TempDir() + "btfd-config-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }

  ~Load() override { std::filesystem::remove_all(directory_); }

  std::string write(std::string_view text) {
    std::string path = pathOf("b.json");
    std::ofstream(path) << text;
    return path;
  }

  std::string pathOf(const char* name) const { return (directory_ / name).string(); }

 private:
  std::filesystem::path directory_;
};

TEST_F(Load, FileIsReadAndChecked) {
  const auto config = load(write(R"({"workers": {"count": 3}})"));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->workers.count, 3U);
}

TEST_F(Load, ErrorsBeginWithThePath) {
  const std::string path = write("{\"workers\":\n{\"count\": 0.5}}");
  const auto config = load(path);
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, StartsWith(path + ":2:2: workers.count: "));
}

TEST_F(Load, NamedFileThatIsMissingIsAnError) {
  const auto config = load(pathOf("missing.json"));
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ENOENT);
  EXPECT_THAT(config.error().message, HasSubstr(pathOf("missing.json")));
}

TEST_F(Load, DefaultFileThatIsMissingMeansDefaults) {
  const auto config = detail::loadFile(pathOf("missing.json"), detail::Missing::MeansDefaults);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(*config, Config{});
}

TEST_F(Load, DefaultFileThatIsThereIsRead) {
  const auto config = detail::loadFile(write("{]"), detail::Missing::MeansDefaults);
  EXPECT_FALSE(config);
}

TEST_F(Load, NoPathMeansTheDefaultFile) {
  if (std::filesystem::exists(kDefaultFile)) {
    GTEST_SKIP() << kDefaultFile << " exists on this machine: what it says is not the test's business";
  }
  const auto config = load("");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(*config, Config{});
}

TEST_F(Load, DirectoryIsAnError) {
  const auto config = load(pathOf(""));
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, EISDIR);
}

TEST_F(Load, HugeFileIsRefusedUnread) {
  const auto config = load(write("{}" + std::string(kMaximumFileBytes, ' ')));
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, EFBIG);
}

} // namespace
} // namespace btfd::config
