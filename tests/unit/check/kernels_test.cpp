// Kernels as they lie in files and directories.
#include "check/btf_file.h"
#include "check/kernels.h"
#include "core/kernel_names.h"
#include "packed.h"
#include "test_support/btf_maker.h"
#include "test_support/elf_maker.h"
#include "test_support/files.h"

#include <bpf/libbpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <linux/btf.h>
#include <sys/stat.h>
#include <unistd.h>

namespace btfd::check {
namespace {

using test_support::BtfMaker;
using test_support::bytesOf;
using test_support::ElfMaker;
using test_support::gzipped;
using test_support::writeFile;
using test_support::xzed;
using testing::ElementsAre;
using testing::HasSubstr;

using Bytes = std::vector<std::byte>;

class KernelsTest : public testing::Test {
 protected:
  KernelsTest() {
    libbpf_set_print(nullptr);
    kernel_.function("of_the_kernel", kernel_.prototype(kernel_.integer(), {}));
  }

  /// What a module adds that has a function called `name`.
  [[nodiscard]] Bytes module(const char* name) const {
    BtfMaker module = BtfMaker::splitFrom(kernel_);
    module.function(name, module.prototype(0, {}));
    return module.bytes();
  }

  [[nodiscard]] Bytes elf(Elf64_Half machine = EM_X86_64) const {
    ElfMaker elf;
    elf.machine(machine);
    elf.section(".text", bytesOf("code"));
    elf.section(".BTF", kernel_.bytes());
    return elf.bytes();
  }

  /// The only kernel at `path`.
  static FoundKernel only(const std::string& path) {
    auto kernels = findKernels(path);
    EXPECT_EQ(kernels.size(), 1U);
    return std::move(kernels.front());
  }

  static bool has(const FoundKernel& found, const char* function) {
    return found.kernel && core::findNamed((*found.kernel)->targets(), function, BTF_KIND_FUNC);
  }

  static std::string errorAt(const std::string& path) {
    const auto found = only(path);
    return found.kernel ? "" : found.kernel.error().message;
  }

  BtfMaker kernel_;
  test_support::TemporaryDirectory directory_;
};

TEST_F(KernelsTest, AreReadFromRawElfAndCompressedFiles) {
  const std::vector<std::pair<std::string, Bytes>> files{
      {"raw.btf", kernel_.bytes()},
      {"vmlinux-6.1", elf()},
      {"packed.btf.gz", gzipped(kernel_.bytes())},
      {"packed.btf.xz", xzed(kernel_.bytes())},
      {"vmlinux.gz", gzipped(elf())},
  };
  for (const auto& [name, content] : files) {
    writeFile(directory_ / name, content);
    const auto found = only(directory_ / name);
    EXPECT_TRUE(has(found, "of_the_kernel")) << name;
    EXPECT_EQ(found.path, directory_ / name);
  }
}

TEST(ReadBtf, AFileThatSomebodyCutsOffMeanwhileIsAnErrorAndNoSignal) {
  constexpr int kRounds = 5000; // enough for a few that meet it while the section is copied
  const test_support::TemporaryDirectory directory;
  const std::string path = directory / "vmlinux";
  ElfMaker elf;
  elf.machine(EM_X86_64);
  elf.section(".BTF", Bytes(std::size_t{2} << 20U)); // copying it takes its time
  const Bytes content = elf.bytes();
  writeFile(path, content);
  std::jthread truncates([&](const std::stop_token& stop) {
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    while (!stop.stop_requested()) {
      EXPECT_EQ(::ftruncate(file.get(), 4096), 0);
      EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(content.size())), 0);
      EXPECT_EQ(::pwrite(file.get(), content.data(), content.size(), 0), static_cast<ssize_t>(content.size()));
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    const auto bytes = readBtf(path);
    if (!bytes) {
      EXPECT_THAT(bytes.error().message, HasSubstr(path));
    }
  }
}

TEST_F(KernelsTest, AreCalledAfterTheirFileOrDirectory) {
  writeFile(directory_ / "6.1.0-9.btf.xz", xzed(kernel_.bytes()));
  EXPECT_EQ((*only(directory_ / "6.1.0-9.btf.xz").kernel)->name(), "6.1.0-9");
  std::filesystem::create_directory(directory_ / "6.12.3");
  writeFile(directory_ / "6.12.3/vmlinux.btf", kernel_.bytes());
  EXPECT_EQ((*only(directory_ / "6.12.3/vmlinux.btf").kernel)->name(), "6.12.3");
}

TEST_F(KernelsTest, TheRunningOneIsCalledSo) {
  if (!std::filesystem::exists("/sys/kernel/btf/vmlinux")) {
    GTEST_SKIP() << "this kernel shows no BTF";
  }
  const auto found = only(kRunningKernel);
  ASSERT_TRUE(found.kernel) << found.kernel.error().message;
  EXPECT_THAT((*found.kernel)->name(), HasSubstr("running ("));
  EXPECT_TRUE((*found.kernel)->helpers().has(1));
  EXPECT_TRUE(core::findNamed((*found.kernel)->targets(), "bpf_prog_load", BTF_KIND_FUNC));
}

TEST_F(KernelsTest, ModulesBesideAKernelBelongToIt) {
  writeFile(directory_ / "vmlinux", kernel_.bytes());
  writeFile(directory_ / "one", module("of_one"));
  writeFile(directory_ / "two.btf.gz", gzipped(module("of_two")));
  writeFile(directory_ / "notes.txt", "not BTF");
  const auto found = only(directory_.path());
  EXPECT_TRUE(has(found, "of_the_kernel"));
  EXPECT_TRUE(has(found, "of_one"));
  EXPECT_TRUE(has(found, "of_two"));
  EXPECT_TRUE(core::findNamed((*found.kernel)->targets(), "of_two", BTF_KIND_FUNC, "two"));
  EXPECT_FALSE(core::findNamed((*found.kernel)->targets(), "of_two", BTF_KIND_FUNC, "one"));
  EXPECT_FALSE(core::findNamed((*found.kernel)->targets(), "of_two", BTF_KIND_FUNC, "vmlinux"));
}

TEST_F(KernelsTest, ADamagedModuleIsLeftOut) {
  writeFile(directory_ / "vmlinux", kernel_.bytes());
  writeFile(directory_ / "good", module("of_good"));
  auto bad = module("of_bad");
  bad.resize(bad.size() - 4);
  writeFile(directory_ / "bad", bad);
  const auto found = only(directory_.path());
  EXPECT_TRUE(has(found, "of_good"));
  EXPECT_FALSE(has(found, "of_bad"));
  ASSERT_EQ(found.leftOut.size(), 1U);
  EXPECT_THAT(found.leftOut.front().message, HasSubstr("/bad: the BTF is damaged"));
}

TEST_F(KernelsTest, ADirectoryMayHoldMany) {
  writeFile(directory_ / "6.1.btf", kernel_.bytes());
  writeFile(directory_ / "6.12.btf.xz", xzed(kernel_.bytes()));
  const auto found = findKernels(directory_.path());
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ((*found[0].kernel)->name(), "6.1");
  EXPECT_EQ((*found[1].kernel)->name(), "6.12");
}

TEST_F(KernelsTest, ADirectoryMayHoldOthers) {
  for (const char* name : {"6.12", "debian/6.1"}) {
    const std::filesystem::path directory = directory_ / name;
    std::filesystem::create_directories(directory);
    writeFile(directory / "vmlinux.btf", kernel_.bytes());
    writeFile(directory / "module", module("of_module"));
  }
  writeFile(directory_ / "5.10.btf", kernel_.bytes());
  std::filesystem::create_directories(directory_ / "empty");
  const auto found = findKernels(directory_.path());
  ASSERT_EQ(found.size(), 3U);
  const std::vector<std::string> names{"5.10", "6.12", "6.1"};
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_TRUE(found[i].kernel) << found[i].kernel.error().message;
    EXPECT_EQ((*found[i].kernel)->name(), names[i]);
    EXPECT_EQ(has(found[i], "of_module"), i > 0);
  }
}

TEST_F(KernelsTest, ModulesBelowAKernelBelongToIt) {
  std::filesystem::create_directories(directory_ / "6.1/btf");
  std::filesystem::create_directories(directory_ / "6.1/kernel/net");
  writeFile(directory_ / "6.1/vmlinux.btf", kernel_.bytes());
  writeFile(directory_ / "6.1/btf/one.btf", module("of_one"));
  writeFile(directory_ / "6.1/kernel/net/two.btf", module("of_two"));
  const auto found = only(directory_.path());
  EXPECT_EQ((*found.kernel)->name(), "6.1");
  EXPECT_TRUE(has(found, "of_one"));
  EXPECT_TRUE(has(found, "of_two"));
}

TEST_F(KernelsTest, ADirectoryBtfIsCalledAfterItsOwn) {
  std::filesystem::create_directories(directory_ / "6.1/btf");
  writeFile(directory_ / "6.1/btf/vmlinux", kernel_.bytes());
  writeFile(directory_ / "6.1/btf/one", module("of_one"));
  const auto found = only(directory_.path());
  EXPECT_EQ((*found.kernel)->name(), "6.1");
  EXPECT_TRUE(has(found, "of_one"));
}

TEST_F(KernelsTest, LinksToDirectoriesAreNotFollowed) {
  std::filesystem::create_directories(directory_ / "6.1");
  std::filesystem::create_directory_symlink("..", directory_ / "6.1/up");
  std::filesystem::create_directory_symlink("6.1", directory_ / "bookworm");
  writeFile(directory_ / "6.1/vmlinux", kernel_.bytes());
  EXPECT_TRUE(only(directory_.path()).kernel);
  EXPECT_TRUE(only(directory_ / "bookworm").kernel) << "but one may be named";
}

TEST_F(KernelsTest, DirectoriesAreNotLookedIntoForEver) {
  std::filesystem::path deep = directory_.path();
  for (int level = 0; level < 8; ++level) {
    deep /= "d";
  }
  std::filesystem::create_directories(deep / "d");
  writeFile(deep / "d/vmlinux", kernel_.bytes());
  EXPECT_THAT(errorAt(directory_.path()), HasSubstr("holds no kernel's BTF"));
  writeFile(deep / "vmlinux", kernel_.bytes());
  EXPECT_TRUE(only(directory_.path()).kernel);
}

TEST_F(KernelsTest, ABadFileDoesNotStopTheOthers) {
  writeFile(directory_ / "bad.btf.gz", "no gzip file");
  writeFile(directory_ / "good.btf", kernel_.bytes());
  const auto found = findKernels(directory_.path());
  ASSERT_EQ(found.size(), 2U);
  EXPECT_TRUE(has(found[0], "of_the_kernel"));
  ASSERT_FALSE(found[1].kernel);
  EXPECT_THAT(found[1].kernel.error().message, HasSubstr("bad.btf.gz is neither BTF nor an ELF file"));
}

TEST_F(KernelsTest, SpellingsOfVmlinuxAreOneKernel) {
  writeFile(directory_ / "vmlinux", elf());
  writeFile(directory_ / "vmlinux.btf", kernel_.bytes());
  EXPECT_EQ(only(directory_.path()).path, directory_ / "vmlinux.btf");
  writeFile(directory_ / "vmlinux.btf", "damaged");
  EXPECT_EQ(only(directory_.path()).path, directory_ / "vmlinux");
}

TEST_F(KernelsTest, ModulesNeedExactlyOneKernel) {
  writeFile(directory_ / "module.btf", module("of_module"));
  EXPECT_THAT(errorAt(directory_.path()), HasSubstr("there is no kernel's BTF beside it"));
  EXPECT_THAT(errorAt(directory_ / "module.btf"), HasSubstr("name the directory"));
  writeFile(directory_ / "a.btf", kernel_.bytes());
  writeFile(directory_ / "b.btf", kernel_.bytes());
  const auto found = findKernels(directory_.path());
  ASSERT_EQ(found.size(), 3U);
  ASSERT_FALSE(found[2].kernel);
  EXPECT_THAT(found[2].kernel.error().message, HasSubstr("several kernels beside it"));
}

TEST_F(KernelsTest, ErrorsNameTheFile) {
  EXPECT_THAT(errorAt(directory_ / "none"), HasSubstr("/none: No such file or directory"));
  EXPECT_THAT(errorAt(directory_.path()), HasSubstr("holds no kernel's BTF"));
  writeFile(directory_ / "empty", "");
  EXPECT_THAT(errorAt(directory_ / "empty"), HasSubstr("empty is empty"));
  writeFile(directory_ / "object.o", elf(EM_BPF));
  EXPECT_THAT(errorAt(directory_ / "object.o"), HasSubstr("objects come first, and kernels after --kernel"));
  ElfMaker elf;
  elf.machine(EM_X86_64);
  elf.section(".text", bytesOf("code"));
  writeFile(directory_ / "stripped", elf.bytes());
  EXPECT_THAT(errorAt(directory_ / "stripped"), HasSubstr("without a .BTF section"));
  writeFile(directory_ / "cut", std::span<const std::byte>(elf.bytes()).first(100));
  EXPECT_THAT(errorAt(directory_ / "cut"), HasSubstr("damaged ELF file"));
  auto damaged = kernel_.bytes();
  damaged.resize(damaged.size() - 4);
  writeFile(directory_ / "damaged", damaged);
  EXPECT_THAT(errorAt(directory_ / "damaged"), HasSubstr("the BTF is damaged"));
  writeFile(directory_ / "void", BtfMaker().bytes());
  EXPECT_THAT(errorAt(directory_ / "void"), HasSubstr("holds no types"));
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(errorAt(directory_ / "pipe"), HasSubstr("no regular file"));
}

TEST_F(KernelsTest, EnumsHaveWhatCountsButNotTheCount) {
  kernel_.enumeration("bpf_func_id", {{"BPF_FUNC_unspec", 0}, {"BPF_FUNC_first", 1}, {"__BPF_FUNC_MAX_ID", 2}});
  kernel_.enumeration64("bpf_map_type", {{"BPF_MAP_TYPE_HASH", 1}, {"__MAX_BPF_MAP_TYPE", 2}});
  writeFile(directory_ / "vmlinux", kernel_.bytes());
  const auto found = only(directory_.path());
  EXPECT_TRUE((*found.kernel)->helpers().known);
  EXPECT_TRUE((*found.kernel)->helpers().has(1));
  EXPECT_FALSE((*found.kernel)->helpers().has(2));
  EXPECT_TRUE((*found.kernel)->mapTypes().has(1));
  EXPECT_FALSE((*found.kernel)->mapTypes().has(2));
  EXPECT_FALSE((*found.kernel)->programTypes().known);
}

TEST_F(KernelsTest, NearNamesAreOfTheSameKindAndPrefix) {
  const auto prototype = kernel_.prototype(0, {});
  kernel_.function("bpf_lsm_file_open", prototype);
  kernel_.function("file_opens", prototype);
  kernel_.structure("bpf_lsm_file_opes", {{"a", kernel_.integer()}});
  writeFile(directory_ / "vmlinux", kernel_.bytes());
  writeFile(directory_ / "module", module("bpf_lsm_file_ope"));
  const auto found = only(directory_.path());
  EXPECT_THAT(core::NearNames((*found.kernel)->targets()).to("file_opem", BTF_KIND_FUNC, "bpf_lsm_"),
              ElementsAre("file_ope", "file_open"));
}

TEST_F(KernelsTest, NearNamesOfAnEnumAreOfAllKindsOfThem) {
  kernel_.enumeration("color", {{"RED", 1}});
  kernel_.enumeration64("colon", {{"GREEN", 2}});
  writeFile(directory_ / "vmlinux", kernel_.bytes());
  const auto found = only(directory_.path());
  core::NearNames near((*found.kernel)->targets());
  for (const auto kind : std::vector<std::uint32_t>{BTF_KIND_ENUM, BTF_KIND_ENUM64}) {
    EXPECT_THAT(near.to("colos", kind), ElementsAre("colon", "color"));
  }
}

TEST_F(KernelsTest, NearNamesAreSearchedForUpToALimitAndThenRemembered) {
  writeFile(directory_ / "vmlinux", kernel_.bytes());
  const auto found = only(directory_.path());
  core::NearNames near((*found.kernel)->targets(), 1);
  for (int times = 0; times < 2; ++times) {
    EXPECT_THAT(near.to("of_the_kernem", BTF_KIND_FUNC), ElementsAre("of_the_kernel"));
    EXPECT_THAT(near.to("of_the_kerneq", BTF_KIND_FUNC), testing::IsEmpty());
  }
}

} // namespace
} // namespace btfd::check
