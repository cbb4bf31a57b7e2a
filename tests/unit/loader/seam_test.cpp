#include "base/error.h"
#include "loader/job.h"
#include "loader/seam.h"
#include "object/libbpf_log.h"
#include "test_support/files.h"

#include <bpf/bpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

/// In libbpf's archive, but not in its public headers.
extern "C" __s32 btf__find_by_name_kind_own(const struct btf* btf, const char* name, __u32 kind);

namespace btfd::loader {
namespace {

using btf::KernelSpec;

std::vector<std::byte> rawBytes(const struct ::btf& btf) {
  std::uint32_t size = 0;
  const auto* data = static_cast<const std::byte*>(btf__raw_data(&btf, &size));
  return {data, data + size};
}

class Seam : public testing::Test {
 protected:
  ~Seam() override { setKernelSpec(KernelSpecState::libbpfsOwn); }

  /// Lends a spec until the end of the test, when it is freed after it is lent no longer.
  void lend(std::shared_ptr<const KernelSpec> spec) {
    spec_ = std::move(spec);
    setKernelSpec(KernelSpecState::lent, spec_.get());
  }

  [[nodiscard]] const KernelSpec& spec() const { return *spec_; }

 private:
  std::shared_ptr<const KernelSpec> spec_;
};

/// With a spec made by hand: a vmlinux and a module.
class HandMadeSeam : public Seam {
 protected:
  HandMadeSeam() {
    const btf::BtfHandle vmlinux(btf__new_empty());
    btf__add_int(vmlinux.get(), "int", 4, BTF_INT_SIGNED);
    btf__add_struct(vmlinux.get(), "task", 4);
    test_support::writeFile(directory_ / "vmlinux", rawBytes(*vmlinux));
    const btf::BtfHandle module(btf__new_empty_split(vmlinux.get()));
    btf__add_struct(module.get(), "driver", 4);
    btf__add_struct(module.get(), "task", 8);
    test_support::writeFile(directory_ / "e1000", rawBytes(*module));
    auto built = KernelSpec::build({.directory = directory_.path(), .fallbackPath = {}}, 1);
    EXPECT_TRUE(built) << built.error().message;
    lend(std::move(*built));
  }

  [[nodiscard]] const struct ::btf& vmlinux() const { return spec().vmlinux(); }

  [[nodiscard]] const struct ::btf& module() const { return *spec().findModule("e1000")->btf; }

  test_support::TemporaryDirectory directory_;
};

TEST_F(HandMadeSeam, LendsTheResidentVmlinux) {
  const SeamCounters before = seamCounters();
  struct ::btf* lent = btf__load_vmlinux_btf();
  EXPECT_EQ(lent, &vmlinux());
  EXPECT_EQ(seamCounters().borrowed, before.borrowed + 1);
  btf__free(lent);
  EXPECT_EQ(seamCounters().returned, before.returned + 1);
  EXPECT_EQ(btf__type_cnt(&vmlinux()), 3U) << "it is still there";
}

TEST_F(HandMadeSeam, FreeingLentModuleBtfIsHarmless) {
  const std::uint64_t before = seamCounters().returned;
  btf__free(const_cast<struct ::btf*>(&module())); // NOLINT: as libbpf does with what it borrowed
  EXPECT_EQ(seamCounters().returned, before + 1);
  EXPECT_EQ(btf__type_cnt(&module()), 5U);
}

TEST_F(HandMadeSeam, FreesWhatIsNotLent) {
  const std::uint64_t before = seamCounters().returned;
  btf__free(btf__new_empty());
  btf__free(nullptr);
  EXPECT_EQ(seamCounters().returned, before);
}

TEST_F(HandMadeSeam, LooksNamesUpAsLibbpfDoes) {
  EXPECT_EQ(btf__find_by_name_kind(&vmlinux(), "task", BTF_KIND_STRUCT), 2);
  EXPECT_EQ(btf__find_by_name_kind(&vmlinux(), "task", BTF_KIND_UNION), -ENOENT);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(btf__find_by_name_kind(&vmlinux(), "void", BTF_KIND_INT), 0);
  EXPECT_EQ(btf__find_by_name_kind(&vmlinux(), "task", BTF_KIND_UNKN), 0);
}

TEST_F(HandMadeSeam, LooksInAModulesBaseFirst) {
  EXPECT_EQ(btf__find_by_name_kind(&module(), "task", BTF_KIND_STRUCT), 2);
  EXPECT_EQ(btf__find_by_name_kind(&module(), "driver", BTF_KIND_STRUCT), 3);
  EXPECT_EQ(btf__find_by_name_kind(&module(), "absent", BTF_KIND_STRUCT), -ENOENT);
}

TEST_F(HandMadeSeam, LooksForAModulesOwnTypesInItAlone) {
  EXPECT_EQ(btf__find_by_name_kind_own(&module(), "task", BTF_KIND_STRUCT), 4);
  EXPECT_EQ(btf__find_by_name_kind_own(&module(), "driver", BTF_KIND_STRUCT), 3);
  EXPECT_EQ(btf__find_by_name_kind_own(&module(), "int", BTF_KIND_INT), -ENOENT);
  EXPECT_EQ(btf__find_by_name_kind_own(&vmlinux(), "driver", BTF_KIND_STRUCT), -ENOENT);
}

TEST_F(HandMadeSeam, LeavesOtherBtfToLibbpf) {
  const btf::BtfHandle other(btf__new_empty());
  btf__add_struct(other.get(), "task", 4);
  EXPECT_EQ(btf__find_by_name_kind(other.get(), "task", BTF_KIND_STRUCT), 1);
  EXPECT_EQ(btf__find_by_name_kind(other.get(), "driver", BTF_KIND_STRUCT), -ENOENT);
}

TEST_F(Seam, CountsWhoAsksBeforeTheSpecIsBuilt) {
  for (const auto state : {KernelSpecState::notBuilt, KernelSpecState::unavailable}) {
    setKernelSpec(state);
    const SeamCounters before = seamCounters();
    EXPECT_EQ(btf__load_vmlinux_btf(), nullptr);
    EXPECT_EQ(errno, ESRCH);
    EXPECT_EQ(seamCounters().missed, before.missed + 1);
    EXPECT_EQ(seamCounters().borrowed, before.borrowed);
  }
}

TEST_F(Seam, AHeldProgramIsKnownByItsName) {
  const UniqueFd file = test_support::memfdOf("x");
  const std::array held{HeldProgram{.name = "on_exec", .descriptor = file}};
  const SeamScope scope(held);
  ASSERT_TRUE(scope.heldProgram("on_exec"));
  EXPECT_EQ(scope.heldProgram("on_exec")->get(), file.get());
  EXPECT_FALSE(scope.heldProgram("on_exe"));
}

TEST_F(Seam, AHeldProgramIsAnsweredWithADuplicate) {
  const UniqueFd file = test_support::memfdOf("x");
  const std::array held{HeldProgram{.name = "on_exec", .descriptor = file}};
  const SeamScope scope(held);
  // No instruction at all: the kernel was not asked.
  const UniqueFd loaded(bpf_prog_load(BPF_PROG_TYPE_TRACING, "on_exec", "GPL", nullptr, 0, nullptr));
  ASSERT_TRUE(loaded);
  EXPECT_NE(loaded.get(), file.get());
  EXPECT_NE(::fcntl(loaded.get(), F_GETFD) & FD_CLOEXEC, 0);
}

/// Loads a real object with the kernel's help.
class LoadingSeam : public Seam {
 protected:
  void SetUp() override {
    const object::LibbpfLog quiet;
    const UniqueFd map(bpf_map_create(BPF_MAP_TYPE_ARRAY, "probe", 4, 4, 1, nullptr));
    if (!map) {
      GTEST_SKIP() << "bpf(2) is not permitted: " << std::strerror(errno);
    }
    if (::access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
      GTEST_SKIP() << "this kernel shows no BTF in /sys/kernel/btf/vmlinux";
    }
  }

  /// Opens and loads an object of the project's; libbpf's error, 0 if there is none.
  static int load(const std::string& name) {
    const object::LibbpfLog quiet;
    const ObjectHandle object(bpf_object__open((std::string(BTFD_BPF_OBJECTS) + "/" + name).c_str()));
    return object ? bpf_object__load(object.get()) : -errno;
  }
};

TEST_F(LoadingSeam, FiftyLoadsParseNothing) {
  const auto spec = KernelSpec::build({}, 1);
  ASSERT_TRUE(spec) << spec.error().message;
  lend(*spec);
  const SeamCounters before = seamCounters();
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(load("tp_btf.o"), 0);
  }
  const SeamCounters after = seamCounters();
  EXPECT_EQ(after.borrowed - before.borrowed, 50U);
  EXPECT_EQ(after.returned - before.returned, 50U);
  EXPECT_EQ(after.missed, before.missed);
}

TEST_F(LoadingSeam, AnObjectThatNeedsNoKernelBtfBorrowsNone) {
  setKernelSpec(KernelSpecState::notBuilt);
  const SeamCounters before = seamCounters();
  EXPECT_EQ(load("no_btf_needed.o"), 0);
  EXPECT_EQ(seamCounters().missed, before.missed);
}

TEST_F(LoadingSeam, ALoadBeforeTheSpecIsBuiltFailsAndIsCounted) {
  setKernelSpec(KernelSpecState::notBuilt);
  const SeamCounters before = seamCounters();
  EXPECT_LT(load("tp_btf.o"), 0);
  EXPECT_GT(seamCounters().missed, before.missed);
}

TEST_F(LoadingSeam, TheTrialProgramIsAnsweredOnceAScope) {
  const auto spec = KernelSpec::build({}, 1);
  ASSERT_TRUE(spec) << spec.error().message;
  lend(*spec);
  const std::uint64_t before = seamCounters().trialsAnswered;
  EXPECT_EQ(load("tp_btf.o"), 0);
  EXPECT_EQ(seamCounters().trialsAnswered, before) << "libbpf without a scope is as it is";
  const SeamScope scope;
  EXPECT_EQ(load("tp_btf.o"), 0);
  EXPECT_EQ(seamCounters().trialsAnswered, before + 1);
  EXPECT_EQ(load("tp_btf.o"), 0) << "with a trial by the kernel";
  EXPECT_EQ(seamCounters().trialsAnswered, before + 1);
}

TEST_F(LoadingSeam, AProbeThatLooksLikeTheTrialProgramIsTheKernels) {
  SeamScope scope;
  EXPECT_FALSE(scope.isTrialProgram(BPF_PROG_TYPE_SOCKET_FILTER, "named", 2));
  EXPECT_FALSE(scope.isTrialProgram(BPF_PROG_TYPE_SOCKET_FILTER, nullptr, 2)) << "not the first";
}

TEST_F(LoadingSeam, ARefusedProgramAndMapAreNamed) {
  const object::LibbpfLog quiet;
  const SeamScope scope;
  const struct bpf_insn exitWithoutResult{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0};
  EXPECT_LT(bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "bad", "GPL", &exitWithoutResult, 1, nullptr), 0);
  EXPECT_EQ(scope.report().failedProgram, "bad");
  EXPECT_LT(bpf_map_create(BPF_MAP_TYPE_ARRAY, "no_keys", 0, 4, 1, nullptr), 0);
  EXPECT_EQ(scope.report().failedMap, "no_keys");
}

} // namespace
} // namespace btfd::loader
