#include "service/capabilities.h"

#include <gmock/gmock.h>

#include <fstream>
#include <string>

#include <linux/capability.h>

namespace btfd::service {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t bit(unsigned capability) {
  return std::uint64_t{1} << capability;
}

constexpr std::uint64_t kAll = bit(CAP_BPF) | bit(CAP_PERFMON) | bit(CAP_NET_ADMIN);

TEST(MissingCapabilities, AreNoneWithAllOrWithTheOneThatStandsForAll) {
  EXPECT_EQ(missingCapabilities(kAll), "");
  EXPECT_EQ(missingCapabilities(bit(CAP_SYS_ADMIN)), "");
}

TEST(MissingCapabilities, EachIsNamedWithWhatFailsWithoutIt) {
  EXPECT_THAT(missingCapabilities(kAll & ~bit(CAP_BPF)),
              AllOf(HasSubstr("without CAP_BPF no object can be loaded;"), Not(HasSubstr("CAP_PERFMON"))));
  EXPECT_THAT(missingCapabilities(kAll & ~bit(CAP_PERFMON)),
              AllOf(HasSubstr("without CAP_PERFMON no tracing program"), Not(HasSubstr("CAP_NET_ADMIN"))));
  EXPECT_THAT(missingCapabilities(bit(CAP_BPF)),
              AllOf(HasSubstr("CAP_PERFMON"), HasSubstr("; without CAP_NET_ADMIN no program for the network"),
                    HasSubstr("btfd.service")));
}

TEST(EffectiveCapabilities, AreThoseThatTheKernelShows) {
  std::ifstream status("/proc/thread-self/status");
  std::uint64_t shown = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("CapEff:")) {
      shown = std::stoull(line.substr(line.find('\t')), nullptr, 16);
    }
  }
  const auto effective = effectiveCapabilities();
  ASSERT_TRUE(effective) << effective.error().message;
  EXPECT_EQ(*effective, shown);
}

} // namespace
} // namespace btfd::service
