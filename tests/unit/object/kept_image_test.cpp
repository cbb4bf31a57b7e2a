#include "btf/name_index.h"
#include "object/checked_image.h"
#include "object/kept_image.h"
#include "test_support/btf_maker.h"
#include "test_support/elf_maker.h"
#include "test_support/files.h"

#include <bpf/libbpf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include <fcntl.h>

namespace btfd::object {
namespace {

using test_support::BtfMaker;
using test_support::ElfMaker;
using test_support::memfdOf;

constexpr std::uint64_t kLimit = std::uint64_t{1} << 20U;

/// A program that asks for one field of struct s, which the kernel has elsewhere.
class KeptImageTest : public testing::Test {
 protected:
  KeptImageTest() {
    libbpf_set_print(nullptr);
    BtfMaker btf;
    const auto type = btf.structure("s", {{"f", btf.integer()}});
    const auto section = btf.string("socket");
    const auto access = btf.string("0:0");
    kernel_.structure("s", {{"f", kernel_.integer(), 0, 64}}, 12);
    ElfMaker elf;
    const bpf_insn move{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0};
    const bpf_insn leave{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0};
    elf.code("socket", std::array{move, leave});
    elf.section(".BTF", btf.bytes());
    elf.section(".BTF.ext", test_support::extensionOf({{section, {{0, type, access, 0}}}}));
    object_ = elf.bytes();
  }

  /// Relocates the object and makes an image of it.
  UniqueFd keep(std::uint64_t generation) {
    const btf::NameIndex index(*kernel_.get(), 1);
    auto bytes = ClientBytes::read(memfdOf(object_), kLimit);
    EXPECT_TRUE(bytes);
    const auto image = CheckedImage::check(*bytes);
    EXPECT_TRUE(image);
    const auto records = CoreRecords::read(*image);
    EXPECT_TRUE(records);
    auto relocations = records->relocate(*bytes, core::Targets(*kernel_.get(), index));
    relocated_.assign(bytes->bytes().begin(), bytes->bytes().end());
    auto memfd = KeptImage::make(
        *bytes, {.relocations = std::move(relocations), .recordsLength = records->length(), .generation = generation});
    EXPECT_TRUE(memfd);
    return std::move(*memfd);
  }

  BtfMaker kernel_;
  std::vector<std::byte> object_;
  std::vector<std::byte> relocated_;
};

TEST_F(KeptImageTest, HasTheRelocatedObjectAndWhatWasDone) {
  const UniqueFd memfd = keep(7);
  const auto image = KeptImage::open(memfd);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_TRUE(std::ranges::equal(image->object(), relocated_));
  EXPECT_EQ(image->generation(), 7U);
  const Relocated relocated = image->relocated();
  EXPECT_EQ(relocated.generation, 7U);
  ASSERT_EQ(relocated.relocations.size(), 1U);
  EXPECT_EQ(relocated.relocations.front().outcome, core::Outcome::resolved);
  EXPECT_EQ(relocated.relocations.front().value, 8U);
}

TEST_F(KeptImageTest, TellsWhatItsRelocationsAreAbout) {
  const UniqueFd memfd = keep(7);
  auto image = KeptImage::open(memfd);
  ASSERT_TRUE(image);
  const auto records = image->restoreRecords();
  ASSERT_TRUE(records) << records.error().message;
  EXPECT_EQ(records->size(), 1U);
  EXPECT_EQ(records->instructionOf(image->relocated().relocations.front()), 0U);
  // The memfd has none still: only the mapping of who asked has.
  const auto another = KeptImage::open(memfd);
  ASSERT_TRUE(another);
  EXPECT_TRUE(std::ranges::equal(another->object(), relocated_));
}

TEST_F(KeptImageTest, CannotBeChanged) {
  const UniqueFd memfd = keep(7);
  const char byte = 0;
  EXPECT_EQ(::pwrite(memfd.get(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(memfd.get(), 0), -1);
}

TEST_F(KeptImageTest, AnObjectWithoutRelocationsHasNone) {
  const auto bytes = ClientBytes::read(memfdOf(std::string("any bytes")), kLimit);
  ASSERT_TRUE(bytes);
  const auto memfd = KeptImage::make(*bytes, {});
  ASSERT_TRUE(memfd);
  const auto image = KeptImage::open(*memfd);
  ASSERT_TRUE(image);
  EXPECT_TRUE(std::ranges::equal(image->object(), bytes->bytes()));
  EXPECT_TRUE(image->relocated().relocations.empty());
}

TEST_F(KeptImageTest, TheFileItselfDoesWhereNothingIsRelocated) {
  const auto image = KeptImage::ofFile(memfdOf(object_));
  ASSERT_TRUE(image);
  EXPECT_TRUE(std::ranges::equal(image->object(), object_));
}

TEST_F(KeptImageTest, WhatIsNoneIsRefused) {
  EXPECT_FALSE(KeptImage::open(memfdOf(std::string(100, 'x'))));
  EXPECT_FALSE(KeptImage::open(memfdOf(std::string("x"))));
  // Of the right form, but not sealed.
  const UniqueFd memfd = keep(1);
  EXPECT_FALSE(KeptImage::open(memfdOf(test_support::readFile("/proc/self/fd/" + std::to_string(memfd.get())))));
}

} // namespace
} // namespace btfd::object
