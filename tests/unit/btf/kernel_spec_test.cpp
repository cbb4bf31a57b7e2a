#include "btf/kernel_spec.h"
#include "test_support/elf_maker.h"
#include "test_support/files.h"

#include <bpf/libbpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace btfd::btf {
namespace {

using test_support::TemporaryDirectory;
using test_support::writeFile;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

std::vector<std::byte> rawBytes(const struct ::btf& btf) {
  std::uint32_t size = 0;
  const auto* data = static_cast<const std::byte*>(btf__raw_data(&btf, &size));
  return {data, data + size};
}

BtfHandle makeVmlinux() {
  BtfHandle btf(btf__new_empty());
  btf__add_int(btf.get(), "int", 4, BTF_INT_SIGNED);
  btf__add_struct(btf.get(), "task_struct", 4);
  btf__add_field(btf.get(), "pid", 1, 0, 0);
  return btf;
}

std::vector<std::byte> makeModule(const struct ::btf& vmlinux, const char* structName) {
  const BtfHandle split(btf__new_empty_split(const_cast<struct ::btf*>(&vmlinux))); // NOLINT: libbpf only reads it
  btf__add_struct(split.get(), structName, 4);
  btf__add_field(split.get(), "value", 1, 0, 0);
  return rawBytes(*split);
}

/// BTF without types and strings, as btf_header alone: the smallest that a module can have.
std::vector<std::byte> headerOnly() {
  struct btf_header header{};
  header.magic = BTF_MAGIC;
  header.version = BTF_VERSION;
  header.hdr_len = sizeof(header);
  const auto bytes = std::as_bytes(std::span(&header, 1));
  return {bytes.begin(), bytes.end()};
}

/// An ELF file whose section .BTF is `btf`.
std::vector<std::byte> inElf(std::span<const std::byte> btf) {
  test_support::ElfMaker maker;
  maker.section(".BTF", btf);
  return maker.bytes();
}

class KernelSpecTest : public testing::Test {
 protected:
  KernelSpecTest() {
    // A broken module is the subject of some tests; what libbpf says of it is not.
    libbpf_set_print(nullptr);
  }

  [[nodiscard]] KernelSpecSource source() const { return {.directory = directory_.path(), .fallbackPath = {}}; }

  TemporaryDirectory directory_;
  BtfHandle vmlinux_ = makeVmlinux();
};

TEST_F(KernelSpecTest, ReadsVmlinuxAndItsModules) {
  writeFile(directory_ / "vmlinux", rawBytes(*vmlinux_));
  const auto module = makeModule(*vmlinux_, "driver");
  writeFile(directory_ / "e1000", module);
  const auto spec = KernelSpec::build(source(), 7);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ((*spec)->generation(), 7U);
  EXPECT_EQ((*spec)->path(), directory_ / "vmlinux");
  EXPECT_FALSE((*spec)->mapped());
  EXPECT_EQ((*spec)->vmlinuxBytes(), rawBytes(*vmlinux_).size());
  EXPECT_EQ((*spec)->index().find("task_struct", BTF_KIND_STRUCT), 2U);
  ASSERT_EQ((*spec)->modules().size(), 1U);
  const ModuleBtf& e1000 = (*spec)->modules()[0];
  EXPECT_EQ(e1000.name, "e1000");
  EXPECT_EQ(e1000.bytes, module.size());
  EXPECT_EQ(e1000.error, "");
  EXPECT_EQ(e1000.typeCount((*spec)->vmlinux()), 1U);
  EXPECT_EQ(e1000.index.find("driver", BTF_KIND_STRUCT), 3U);
  EXPECT_EQ(e1000.index.find("task_struct", BTF_KIND_STRUCT), std::nullopt);
  EXPECT_GT((*spec)->privateBytes(), (*spec)->vmlinuxBytes());
}

TEST_F(KernelSpecTest, ModulesAreFoundByName) {
  writeFile(directory_ / "vmlinux", rawBytes(*vmlinux_));
  for (const char* name : {"zram", "e1000", "nf_tables"}) {
    writeFile(directory_ / name, makeModule(*vmlinux_, name));
  }
  const auto spec = KernelSpec::build(source(), 1);
  ASSERT_TRUE(spec);
  for (const char* name : {"zram", "e1000", "nf_tables"}) {
    const ModuleBtf* module = (*spec)->findModule(name);
    ASSERT_NE(module, nullptr) << name;
    EXPECT_EQ(module->index.find(name, BTF_KIND_STRUCT), 3U);
  }
  EXPECT_EQ((*spec)->findModule("e100"), nullptr);
  EXPECT_EQ((*spec)->findModule("vmlinux"), nullptr);
  EXPECT_EQ((*spec)->findModule(""), nullptr);
}

TEST_F(KernelSpecTest, ABrokenModuleIsLeftOutWithItsError) {
  writeFile(directory_ / "vmlinux", rawBytes(*vmlinux_));
  const auto good = makeModule(*vmlinux_, "driver");
  writeFile(directory_ / "garbage", "this is no BTF at all, whatever the kernel says");
  writeFile(directory_ / "good", good);
  writeFile(directory_ / "truncated", std::span(good).first(good.size() - 3));
  writeFile(directory_ / "short", std::span(good).first(10));
  writeFile(directory_ / "nothing", "");
  const auto spec = KernelSpec::build(source(), 1);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ((*spec)->modules().size(), 5U);
  for (const ModuleBtf& module : (*spec)->modules()) {
    if (module.name == "good") {
      EXPECT_EQ(module.error, "");
      EXPECT_NE((*spec)->findModule(module.name), nullptr);
      continue;
    }
    EXPECT_THAT(module.error, HasSubstr("cannot be parsed: ")) << module.name;
    EXPECT_EQ(module.typeCount((*spec)->vmlinux()), 0U) << module.name;
    EXPECT_EQ((*spec)->findModule(module.name), nullptr) << module.name;
  }
}

TEST_F(KernelSpecTest, AModuleMayAddNothing) {
  writeFile(directory_ / "vmlinux", rawBytes(*vmlinux_));
  writeFile(directory_ / "empty", headerOnly());
  const auto spec = KernelSpec::build(source(), 1);
  ASSERT_TRUE(spec) << spec.error().message;
  const ModuleBtf* module = (*spec)->findModule("empty");
  ASSERT_NE(module, nullptr) << (*spec)->modules()[0].error;
  EXPECT_EQ(module->typeCount((*spec)->vmlinux()), 0U);
  EXPECT_EQ(module->index.size(), 0U);
}

TEST_F(KernelSpecTest, ModulesAreNotReadWhenNotWanted) {
  writeFile(directory_ / "vmlinux", rawBytes(*vmlinux_));
  writeFile(directory_ / "driver", makeModule(*vmlinux_, "driver"));
  auto withoutModules = source();
  withoutModules.modules = false;
  const auto spec = KernelSpec::build(withoutModules, 1);
  ASSERT_TRUE(spec);
  EXPECT_THAT((*spec)->modules(), IsEmpty());
}

TEST_F(KernelSpecTest, VmlinuxWithoutTypesIsAnError) {
  const BtfHandle empty(btf__new_empty());
  writeFile(directory_ / "vmlinux", rawBytes(*empty));
  const auto spec = KernelSpec::build(source(), 1);
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().code, EINVAL);
  EXPECT_THAT(spec.error().message, HasSubstr("holds no types"));
  EXPECT_THAT(spec.error().message, HasSubstr(directory_ / "vmlinux"));
}

TEST_F(KernelSpecTest, BrokenVmlinuxIsAnErrorThatNamesTheFile) {
  writeFile(directory_ / "vmlinux", "garbage that is as long as a BTF header");
  const auto spec = KernelSpec::build(source(), 1);
  ASSERT_FALSE(spec);
  EXPECT_NE(spec.error().code, 0);
  EXPECT_THAT(spec.error().message, HasSubstr(directory_ / "vmlinux"));
}

TEST_F(KernelSpecTest, AFallbackThatIsNoFileIsAnErrorThatNamesIt) {
  auto withFallback = source();
  for (const std::string& path : {directory_.path(), directory_ / "missing"}) {
    withFallback.fallbackPath = path;
    const auto spec = KernelSpec::build(withFallback, 1);
    ASSERT_FALSE(spec);
    EXPECT_THAT(spec.error().message, HasSubstr(path + ": it cannot be "));
  }
}

TEST_F(KernelSpecTest, AKernelWithoutBtfAndNoFallbackIsEnoentAndSaysWhatToDo) {
  auto missing = source();
  missing.directory = directory_ / "missing";
  const auto spec = KernelSpec::build(missing, 1);
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().code, ENOENT);
  EXPECT_THAT(spec.error().message, HasSubstr("CONFIG_DEBUG_INFO_BTF"));
  EXPECT_THAT(spec.error().message, HasSubstr("kernelBtf.path"));
}

TEST_F(KernelSpecTest, TheFallbackMayBeRawBtf) {
  const TemporaryDirectory elsewhere;
  writeFile(elsewhere / "kernel.btf", rawBytes(*vmlinux_));
  auto withFallback = source();
  withFallback.fallbackPath = elsewhere / "kernel.btf";
  const auto spec = KernelSpec::build(withFallback, 1);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ((*spec)->path(), elsewhere / "kernel.btf");
  EXPECT_FALSE((*spec)->mapped());
  EXPECT_EQ((*spec)->index().find("task_struct", BTF_KIND_STRUCT), 2U);
}

TEST_F(KernelSpecTest, TheFallbackMayBeAnElfFile) {
  const TemporaryDirectory elsewhere;
  writeFile(elsewhere / "vmlinux.elf", inElf(rawBytes(*vmlinux_)));
  auto withFallback = source();
  withFallback.fallbackPath = elsewhere / "vmlinux.elf";
  const auto spec = KernelSpec::build(withFallback, 1);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ((*spec)->index().find("task_struct", BTF_KIND_STRUCT), 2U);
}

TEST_F(KernelSpecTest, AMissingFallbackIsAnErrorThatNamesIt) {
  auto withFallback = source();
  withFallback.fallbackPath = directory_ / "absent.btf";
  const auto spec = KernelSpec::build(withFallback, 1);
  ASSERT_FALSE(spec);
  EXPECT_THAT(spec.error().message, HasSubstr("absent.btf"));
}

TEST_F(KernelSpecTest, TheKernelsOwnBtfGoesBeforeTheFallback) {
  const TemporaryDirectory elsewhere;
  const BtfHandle other(btf__new_empty());
  btf__add_struct(other.get(), "of_another_kernel", 4);
  writeFile(elsewhere / "other.btf", rawBytes(*other));
  writeFile(directory_ / "vmlinux", rawBytes(*vmlinux_));
  auto withFallback = source();
  withFallback.fallbackPath = elsewhere / "other.btf";
  const auto spec = KernelSpec::build(withFallback, 1);
  ASSERT_TRUE(spec);
  EXPECT_EQ((*spec)->path(), directory_ / "vmlinux");
  EXPECT_EQ((*spec)->index().find("of_another_kernel", BTF_KIND_STRUCT), std::nullopt);
}

TEST_F(KernelSpecTest, ListModulesIsSortedAndWithoutVmlinux) {
  writeFile(directory_ / "zram", "12345");
  writeFile(directory_ / "vmlinux", "1");
  writeFile(directory_ / "ext4", "123");
  EXPECT_THAT(listModules(directory_.path()), ElementsAre(Pair("ext4", 3U), Pair("zram", 5U)));
  EXPECT_THAT(listModules(directory_ / "missing"), IsEmpty());
}

} // namespace
} // namespace btfd::btf
