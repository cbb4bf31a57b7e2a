#include "base/object_name.h"
#include "test_support/files.h"

#include <gtest/gtest.h>

#include <string>

#include <fcntl.h>
#include <sys/mman.h>

namespace btfd {
namespace {

TEST(ObjectName, IsThatOfItsFile) {
  EXPECT_EQ(objectName("/usr/lib/bpf/xdp_dispatcher.o"), "xdp_dispatcher");
  EXPECT_EQ(objectName("exec_events.bpf.o"), "exec_events");
  EXPECT_EQ(objectName("./a.b.o"), "a.b");
  EXPECT_EQ(objectName("trace"), "trace");
  EXPECT_EQ(objectName("trace.bpf"), "trace.bpf");
}

TEST(ObjectName, IsNoneWhereThatCannotBeShown) {
  for (const auto& path : {std::string(), std::string("/some/directory/"), std::string(".o"), std::string("a\nb.o"),
                           std::string("a\xff.o"), std::string(kMaximumObjectName + 1, 'a')}) {
    EXPECT_EQ(objectName(path), "") << path;
  }
  EXPECT_EQ(objectName(std::string(kMaximumObjectName, 'a')).size(), kMaximumObjectName);
}

TEST(ObjectName, OfAnOpenFile) {
  EXPECT_EQ(objectName(UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC))), "null");
  EXPECT_EQ(objectName(UniqueFd(::memfd_create("probe.bpf.o", MFD_CLOEXEC))), "probe");
  EXPECT_EQ(objectName(UniqueFd(::memfd_create("a/b", MFD_CLOEXEC))), "b");
  EXPECT_EQ(objectName(UniqueFd(::memfd_create("", MFD_CLOEXEC))), "");
  EXPECT_EQ(objectName(UniqueFd()), "");
}

} // namespace
} // namespace btfd
