// On this machine's kernel.
#include "btf/kernel_spec.h"
#include "test_support/files.h"

#include <gtest/gtest.h>

#include <cstdio>

#include <sys/utsname.h>
#include <unistd.h>

namespace btfd::btf {
namespace {

class RunningKernel : public testing::Test {
 protected:
  void SetUp() override {
    if (::access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
      GTEST_SKIP() << "this kernel shows no BTF in /sys/kernel/btf/vmlinux";
    }
    auto built = KernelSpec::build({}, 1);
    ASSERT_TRUE(built) << built.error().message;
    spec_ = *built;
  }

  std::shared_ptr<const KernelSpec> spec_;
};

/// Every name would take libbpf's scan minutes; each 997th is more than a hundred.
TEST_F(RunningKernel, TheIndexFindsWhatLibbpfFinds) {
  const struct ::btf& vmlinux = spec_->vmlinux();
  int compared = 0;
  for (std::uint32_t id = 1; id < btf__type_cnt(&vmlinux); id += 997) {
    const struct btf_type* type = btf__type_by_id(&vmlinux, id);
    const char* name = btf__name_by_offset(&vmlinux, type->name_off);
    if (*name == '\0') {
      continue;
    }
    const auto kind = btf_kind(type);
    ASSERT_EQ(spec_->index().find(name, kind), static_cast<std::uint32_t>(btf__find_by_name_kind(&vmlinux, name, kind)))
        << name;
    ++compared;
  }
  EXPECT_GT(compared, 20);
}

TEST_F(RunningKernel, EachNamedTypeIsFoundAtItsOwnIdOrALowerOne) {
  const struct ::btf& vmlinux = spec_->vmlinux();
  std::size_t named = 0;
  for (std::uint32_t id = 1; id < btf__type_cnt(&vmlinux); ++id) {
    const struct btf_type* type = btf__type_by_id(&vmlinux, id);
    const std::string_view name = btf__name_by_offset(&vmlinux, type->name_off);
    if (name.empty()) {
      continue;
    }
    ++named;
    const auto found = spec_->index().find(name, btf_kind(type));
    ASSERT_TRUE(found) << name;
    ASSERT_LE(*found, id) << name;
    const struct btf_type* other = btf__type_by_id(&vmlinux, *found);
    ASSERT_EQ(name, btf__name_by_offset(&vmlinux, other->name_off));
    ASSERT_EQ(btf_kind(other), btf_kind(type));
  }
  EXPECT_EQ(spec_->index().size(), named);
}

TEST_F(RunningKernel, VmlinuxIsMappedSinceLinux616) {
  struct utsname system{};
  ASSERT_EQ(::uname(&system), 0);
  int major = 0;
  int minor = 0;
  ASSERT_EQ(std::sscanf(static_cast<const char*>(system.release), "%d.%d", &major, &minor), 2); // NOLINT
  EXPECT_EQ(spec_->mapped(), major > 6 || (major == 6 && minor >= 16)) << static_cast<const char*>(system.release);
}

TEST_F(RunningKernel, AMappedSpecTakesLessMemoryThanItsBytes) {
  if (!spec_->mapped()) {
    GTEST_SKIP() << "this kernel does not let its BTF be mapped";
  }
  EXPECT_LT(spec_->privateBytes(), spec_->vmlinuxBytes());
}

TEST_F(RunningKernel, ModulesAreThoseThatTheKernelShows) {
  const auto listed = listModules("/sys/kernel/btf");
  ASSERT_EQ(spec_->modules().size(), listed.size());
  for (std::size_t i = 0; i < listed.size(); ++i) {
    EXPECT_EQ(spec_->modules()[i].name, listed[i].first);
    EXPECT_EQ(spec_->modules()[i].error, "") << listed[i].first;
  }
}

} // namespace
} // namespace btfd::btf
