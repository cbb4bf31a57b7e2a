#include "loader/descriptors.h"

#include <gtest/gtest.h>

#include <vector>

#include <fcntl.h>

namespace btfd::loader {
namespace {

class RequestDescriptorsTest : public testing::Test {
 protected:
  RequestDescriptorsTest() {
    for (int i = 0; i < 2; ++i) {
      files_.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
  }

  std::vector<UniqueFd> files_;
};

TEST_F(RequestDescriptorsTest, AnIndexNamesADescriptor) {
  RequestDescriptors descriptors(files_);
  const auto taken = descriptors.take(1, "objectFileDescriptor");
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->get(), files_[1].get());
}

TEST_F(RequestDescriptorsTest, WhatNamesNoneIsAnInvalidParameter) {
  RequestDescriptors descriptors(files_);
  for (const nlohmann::json& index :
       {nlohmann::json(2), nlohmann::json(-1), nlohmann::json(UINT64_MAX), nlohmann::json(INT64_MIN),
        nlohmann::json(0.0), nlohmann::json("0"), nlohmann::json(nullptr), nlohmann::json(false)}) {
    const auto taken = descriptors.take(index, "maps.counts.reuseFileDescriptor");
    ASSERT_FALSE(taken) << index;
    EXPECT_EQ(taken.error().error, "org.varlink.service.InvalidParameter");
    EXPECT_EQ(taken.error().parameters.at("parameter"), "maps.counts.reuseFileDescriptor");
  }
}

TEST_F(RequestDescriptorsTest, AClientCannotNameWhatTheFrontHolds) {
  RequestDescriptors descriptors(files_, 1);
  EXPECT_TRUE(descriptors.take(0, "objectFileDescriptor"));
  const auto taken = descriptors.take(1, "maps.counts.reuseFileDescriptor");
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().parameters.at("reason").get<std::string>().find("none of the 1 descriptors"),
            std::string::npos);
  EXPECT_EQ(descriptors.held(1).get(), files_[1].get());
  EXPECT_THROW(static_cast<void>(descriptors.held(0)), std::out_of_range);
  EXPECT_THROW(static_cast<void>(descriptors.held(2)), std::out_of_range);
}

TEST_F(RequestDescriptorsTest, EachMayBeNamedOnce) {
  RequestDescriptors descriptors(files_);
  ASSERT_TRUE(descriptors.take(0, "objectFileDescriptor"));
  const auto again = descriptors.take(0, "maps.counts.reuseFileDescriptor");
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().parameters.at("reason").get<std::string>().find("already"), std::string::npos);
}

} // namespace
} // namespace btfd::loader
