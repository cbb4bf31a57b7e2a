#include "service/uevent.h"

#include <gtest/gtest.h>

#include <string_view>

namespace btfd::service {
namespace {

using std::string_view_literals::operator""sv;

bool says(std::string_view message) {
  return isModuleEvent(std::span(message.data(), message.size()));
}

TEST(Uevent, ModulesThatComeAndGoAreSeen) {
  EXPECT_TRUE(says("add@/module/nf_tables\0ACTION=add\0DEVPATH=/module/nf_tables\0SUBSYSTEM=module\0"sv));
  EXPECT_TRUE(says("remove@/module/nf_tables\0ACTION=remove\0"sv));
}

TEST(Uevent, OtherActionsAndDevicesAreNot) {
  EXPECT_FALSE(says("change@/module/nf_tables\0"sv));
  EXPECT_FALSE(says("add@/devices/virtual/net/lo\0"sv));
  EXPECT_FALSE(says("add@/modules/x\0"sv));
  EXPECT_FALSE(says("readd@/module/x\0"sv));
}

TEST(Uevent, OnlyTheHeaderCounts) {
  EXPECT_FALSE(says("change@/devices/x\0add@/module/x\0"sv));
}

TEST(Uevent, NonsenseIsNoEvent) {
  EXPECT_FALSE(says(""));
  EXPECT_FALSE(isModuleEvent({}));
  EXPECT_FALSE(says("add"));
  EXPECT_FALSE(says("add@"));
  EXPECT_FALSE(says("@/module/x"));
  EXPECT_FALSE(says("libudev\0\xfe\xed\xca\xfe"sv));
  EXPECT_FALSE(says("add@/module")); // cut off
}

TEST(Uevent, AMessageNeedsNoNul) {
  EXPECT_TRUE(says("add@/module/x"));
}

} // namespace
} // namespace btfd::service
