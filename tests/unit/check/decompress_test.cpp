#include "check/decompress.h"
#include "packed.h"
#include "test_support/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>

namespace btfd::check {
namespace {

using test_support::bytesOf;
using test_support::gzipped;
using test_support::xzed;
using testing::HasSubstr;

class DecompressTest : public testing::TestWithParam<Compression> {
 protected:
  [[nodiscard]] static std::vector<std::byte> packed(std::span<const std::byte> content) {
    return GetParam() == Compression::gzip ? gzipped(content) : xzed(content);
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, DecompressTest, testing::Values(Compression::gzip, Compression::xz),
                         [](const auto& param) { return param.param == Compression::gzip ? "Gzip" : "Xz"; });

TEST_P(DecompressTest, GivesWhatWasPacked) {
  std::vector<std::byte> content(5'000'000);
  for (std::size_t i = 0; i < content.size(); ++i) {
    content[i] = static_cast<std::byte>(i * i >> 7U);
  }
  const auto file = packed(content);
  EXPECT_EQ(compressionOf(file), GetParam());
  EXPECT_EQ(decompress(file).value(), content);
  EXPECT_TRUE(decompress(packed({})).value().empty());
}

TEST_P(DecompressTest, StopsAtTheLimit) {
  const std::vector<std::byte> zeros(std::size_t{8} << 20U);
  const auto file = packed(zeros);
  EXPECT_LT(file.size(), 100'000U);
  const auto refused = decompress(file, std::size_t{4} << 20U);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, EFBIG);
  EXPECT_EQ(refused.error().message, "it holds more than 4 MiB");
}

TEST_P(DecompressTest, SaysThatAFileIsCutOffOrDamaged) {
  auto file = packed(bytesOf("what is in a file"));
  const auto cut = decompress(std::span(file).first(file.size() - 10));
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().message, HasSubstr("cut off"));
  file[file.size() / 2] ^= std::byte{0xff};
  const auto damaged = decompress(file);
  ASSERT_FALSE(damaged);
  EXPECT_THAT(damaged.error().message, HasSubstr("damaged"));
}

TEST(Decompress, RefusesOtherFormats) {
  EXPECT_EQ(compressionOf(bytesOf("text")), Compression::none);
  EXPECT_THAT(decompress(bytesOf("text")).error().message, HasSubstr("neither a gzip nor an xz file"));
  EXPECT_EQ(compressionOf({}), Compression::none);
  EXPECT_THAT(decompress(bytesOf("\x28\xb5\x2f\xfd and more")).error().message, HasSubstr("unzstd"));
}

} // namespace
} // namespace btfd::check
