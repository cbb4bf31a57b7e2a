#include "loader/probe_section.h"

#include <gtest/gtest.h>

namespace btfd::loader {
namespace {

TEST(ProbeSection, SaysWhichKindAndWhatFor) {
  const ProbeSection section("kretprobe.multi/tcp_*");
  EXPECT_EQ(section.kind, "kretprobe.multi");
  EXPECT_EQ(section.target, "tcp_*");
  EXPECT_TRUE(section.isMulti());
  EXPECT_TRUE(section.isForReturns());
  EXPECT_FALSE(section.isForUserSpace());
  EXPECT_EQ(section.singleKind(), "kretprobe");
}

TEST(ProbeSection, MayLeaveTheTargetToTheRequest) {
  const ProbeSection section("uprobe.multi.s");
  EXPECT_EQ(section.target, "");
  EXPECT_TRUE(section.isForUserSpace());
  EXPECT_EQ(section.singleKind(), "uprobe.s");
  EXPECT_EQ(ProbeSection("uprobe/libc.so.6:malloc").target, "libc.so.6:malloc");
}

TEST(FunctionOffset, IsBehindAPlus) {
  EXPECT_EQ(readFunctionOffset("malloc")->function, "malloc");
  EXPECT_EQ(readFunctionOffset("malloc")->offset, 0U);
  EXPECT_EQ(readFunctionOffset("malloc+8")->offset, 8U);
  EXPECT_EQ(readFunctionOffset("malloc+0x10")->offset, 16U);
  EXPECT_EQ(readFunctionOffset("0x40")->function, "");
  EXPECT_EQ(readFunctionOffset("0x40")->offset, 64U);
}

TEST(FunctionOffset, IsANumber) {
  for (const auto* text : {"malloc+", "malloc+8x", "malloc+-8", "malloc+0x"}) {
    EXPECT_FALSE(readFunctionOffset(text)) << text;
  }
}

} // namespace
} // namespace btfd::loader
