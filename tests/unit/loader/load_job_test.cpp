#include "loader/load_job.h"
#include "test_support/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace btfd::loader {
namespace {

using testing::HasSubstr;

/// What becomes of loading an object of two maps if its description may take so many bytes. That is found out before
/// anything that takes privileges.
Outcome<JobReply> loadWithin(std::size_t descriptionBytes) {
  std::vector<UniqueFd> files;
  files.push_back(test_support::memfdOf(test_support::readFile(std::string(BTFD_BPF_OBJECTS) + "/no_btf_needed.o")));
  RequestDescriptors descriptors(files);
  const JobLimits limits{.objectBytes = 1U << 20U, .verifierLogBytes = 1024, .descriptionBytes = descriptionBytes};
  VerifierLogBuffer log;
  nlohmann::json request;
  request["parameters"]["objectFileDescriptor"] = 0;
  return runLoadJob(request, descriptors, limits, log);
}

TEST(LoadJob, AnObjectThatTakesTooMuchToDescribeIsRefused) {
  const auto refused = loadWithin(150);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error, "io.btfd.LimitExceeded");
  EXPECT_EQ(refused.error().parameters.at("limit"), "descriptionBytes");
  EXPECT_EQ(refused.error().parameters.at("maximum"), 150);
  EXPECT_THAT(refused.error().parameters.at("message").get<std::string>(), HasSubstr("150 bytes"));
}

TEST(LoadJob, OneThatDoesNotIsNotRefusedForThat) {
  const auto loaded = loadWithin(100'000);
  EXPECT_TRUE(loaded || loaded.error().error != "io.btfd.LimitExceeded") << loaded.error().parameters;
}

} // namespace
} // namespace btfd::loader
