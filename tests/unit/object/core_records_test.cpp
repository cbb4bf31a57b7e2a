// CO-RE records of an object file: from its sections to patched instructions, and what may be wrong on the way.
#include "btf/name_index.h"
#include "object/relocate_image.h"
#include "test_support/btf_maker.h"
#include "test_support/byte_order.h"
#include "test_support/elf_maker.h"
#include "test_support/files.h"

#include <bpf/libbpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <elf.h>

namespace btfd::object {
namespace {

using test_support::BtfMaker;
using test_support::CoreRecord;
using test_support::ElfMaker;
using test_support::extensionOf;
using test_support::swapped;
using test_support::TypeId;
using testing::HasSubstr;

using Bytes = std::vector<std::byte>;

bpf_insn move(std::int32_t immediate) {
  return {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = immediate};
}

bpf_insn leave() {
  return {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0};
}

class CoreRecordsTest : public testing::Test {
 protected:
  CoreRecordsTest() {
    libbpf_set_print(nullptr);
    type_ = btf_.structure("s", {{"f", btf_.integer()}});
    kernel_.structure("s", {{"f", kernel_.integer(), 0, 64}}, 12);
    socket_ = btf_.string("socket");
    access_ = btf_.string("0:0");
  }

  /// Two programs in a section "socket", with a record for each.
  [[nodiscard]] Bytes object() const {
    return object(btf_.bytes(), extensionOf({{socket_, {{0, type_, access_, 0}, {24, type_, access_, 0}}}}));
  }

  [[nodiscard]] static Bytes object(const Bytes& btf, const Bytes& extension, const char* name = "socket") {
    ElfMaker elf;
    const std::array code = {move(0), move(7), leave(), move(7), move(0), leave()};
    std::array shifted = code;
    shifted[3] = move(0);
    const std::size_t section = elf.code(name, shifted);
    elf.function("first", section, 0, 3);
    elf.function("second", section, 3, 3);
    elf.section("license", std::as_bytes(std::span("GPL", 4)));
    elf.section(".BTF", btf);
    elf.section(".BTF.ext", extension);
    return elf.bytes();
  }

  struct Opened {
    ClientBytes bytes;
    Result<CheckedImage> image;
    Result<CoreRecords> records;
  };

  static Opened open(const Bytes& content) {
    auto bytes = ClientBytes::read(test_support::memfdOf(content), std::uint64_t{64} << 20U);
    auto image = CheckedImage::check(*bytes, ByteOrders::any);
    EXPECT_TRUE(image) << image.error().message;
    auto records = image ? CoreRecords::read(*image) : fail("");
    return {std::move(*bytes), std::move(image), std::move(records)};
  }

  static std::string errorOf(const Bytes& content) {
    const auto opened = open(content);
    return opened.records ? "" : opened.records.error().message;
  }

  std::vector<core::Relocation> relocate(Opened& opened) const {
    const btf::NameIndex index(kernel_.btf(), 1);
    return opened.records->relocate(opened.bytes, core::Targets(kernel_.btf(), index));
  }

  static bpf_insn instruction(const Opened& opened, std::size_t index) {
    bpf_insn result{};
    const auto code = opened.image->find("socket")->content;
    std::memcpy(&result, code.data() + index * sizeof(result), sizeof(result));
    return result;
  }

  BtfMaker btf_;
  BtfMaker kernel_;
  std::uint32_t type_ = 0;
  std::uint32_t socket_ = 0;
  std::uint32_t access_ = 0;
};

TEST_F(CoreRecordsTest, ArePatchedIntoTheImage) {
  auto opened = open(object());
  ASSERT_TRUE(opened.records) << opened.records.error().message;
  EXPECT_EQ(opened.records->size(), 2U);
  EXPECT_FALSE(opened.records->empty());
  EXPECT_TRUE(opened.records->needKernel());
  const auto relocations = relocate(opened);
  ASSERT_EQ(relocations.size(), 2U);
  for (const auto& each : relocations) {
    EXPECT_EQ(each.outcome, core::Outcome::resolved);
    EXPECT_FALSE(opened.records->isShared(each));
    EXPECT_EQ(opened.records->instructionOf(each), 0U);
  }
  EXPECT_EQ(opened.records->functionOf(relocations[0]), "first");
  EXPECT_EQ(opened.records->functionOf(relocations[1]), "second");
  EXPECT_EQ(instruction(opened, 0).imm, 8);
  EXPECT_EQ(instruction(opened, 3).imm, 8);
  EXPECT_EQ(instruction(opened, 1).imm, 7);
}

class ByteOrderTest : public CoreRecordsTest {
 protected:
  /// A kernel in which what the objects ask for lies elsewhere.
  ByteOrderTest() {
    BtfMaker made;
    const TypeId number = made.integer();
    const TypeId unsignedNumber = made.unsignedInteger();
    const TypeId id = made.structure("", {{"unused", number}, {"val", unsignedNumber}});
    const TypeId credentials = made.structure("cred", {{"usage", number}, {"uid", made.definedAs("kuid_t", id)}});
    const TypeId text = made.array(made.integer("char", 1), 16);
    const TypeId task = made.next(2);
    made.structure("task_struct", {{"thread", made.array(number, 7)},
                                   {"pid", number},
                                   {"tgid", number},
                                   {"cred", made.pointer(credentials)},
                                   {"real_parent", made.pointer(task)},
                                   {"comm", text}});
    kernel_ = std::move(made);
  }

  static Opened openObject(const std::string& name) {
    return open(test_support::readFile(std::string(BTFD_BPF_OBJECTS) + "/" + name));
  }

  static std::vector<bpf_insn> codeOf(const Opened& opened) {
    std::vector<bpf_insn> code;
    for (const Section& section : opened.image->sections()) {
      for (std::size_t at = 0; section.isCode && at + sizeof(bpf_insn) <= section.content.size();
           at += sizeof(bpf_insn)) {
        bpf_insn instruction{};
        std::memcpy(&instruction, section.content.data() + at, sizeof(instruction));
        code.push_back(opened.image->isForeign() ? swapped(instruction) : instruction);
      }
    }
    return code;
  }
};

TEST_F(ByteOrderTest, AnObjectOfTheOtherIsRelocatedAsOneOfThis) {
  const auto equal = [](const bpf_insn& left, const bpf_insn& right) {
    return std::memcmp(&left, &right, sizeof(left)) == 0;
  };
  for (const std::string name : {"exec_events.o", "guarded.o", "missing_field.o", "iter_task.o"}) {
    SCOPED_TRACE(name);
    auto ours = openObject(name);
    auto theirs = openObject("big_endian/" + name);
    ASSERT_TRUE(ours.records && theirs.records);
    const auto before = codeOf(ours);
    ASSERT_TRUE(std::ranges::equal(codeOf(theirs), before, equal)) << "compiled differently";
    const auto expected = relocate(ours);
    const auto relocations = relocate(theirs);
    ASSERT_FALSE(relocations.empty());
    const auto results = [](const core::Relocation& each) {
      return std::tuple(each.outcome, each.value, each.localValue, each.fault, each.record.instructionOffset);
    };
    EXPECT_TRUE(std::ranges::equal(relocations, expected, {}, results, results));
    EXPECT_FALSE(std::ranges::equal(codeOf(ours), before, equal)) << "nothing was patched";
    EXPECT_TRUE(std::ranges::equal(codeOf(theirs), codeOf(ours), equal));
    const auto again = CoreRecords::read(*theirs.image);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_TRUE(again->empty());
  }
}

TEST_F(ByteOrderTest, AKernelOfTheOtherIsReadAsOneOfThis) {
  auto ours = openObject("exec_events.o");
  auto theirs = openObject("exec_events.o");
  const auto expected = relocate(ours);
  ASSERT_EQ(btf__set_endianness(kernel_.get(), BTF_BIG_ENDIAN), 0);
  const auto bytes = kernel_.bytes();
  const btf::BtfHandle kernel(btf__new(bytes.data(), static_cast<std::uint32_t>(bytes.size())));
  ASSERT_TRUE(kernel);
  ASSERT_EQ(btf__endianness(kernel.get()), BTF_BIG_ENDIAN);
  const btf::NameIndex index(*kernel, 1);
  const auto relocations = theirs.records->relocate(theirs.bytes, core::Targets(*kernel, index));
  ASSERT_FALSE(relocations.empty());
  EXPECT_TRUE(std::ranges::equal(theirs.bytes.bytes(), ours.bytes.bytes()));
}

TEST_F(CoreRecordsTest, AreGoneAfterwards) {
  auto opened = open(object());
  relocate(opened);
  const auto again = CoreRecords::read(*opened.image);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->empty());
  bpf_object* theirs = bpf_object__open_mem(opened.bytes.bytes().data(), opened.bytes.bytes().size(), nullptr);
  EXPECT_NE(theirs, nullptr);
  bpf_object__close(theirs);
}

TEST_F(CoreRecordsTest, MayBeDroppedUnapplied) {
  auto opened = open(object());
  opened.records->drop(opened.bytes);
  EXPECT_EQ(instruction(opened, 0).imm, 0);
  EXPECT_TRUE(CoreRecords::read(*opened.image)->empty());
}

TEST_F(CoreRecordsTest, AnObjectWithoutThemHasNone) {
  ElfMaker elf;
  elf.code("socket", std::array{move(0), leave()});
  auto opened = open(elf.bytes());
  ASSERT_TRUE(opened.records);
  EXPECT_TRUE(opened.records->empty());
  EXPECT_FALSE(opened.records->needKernel());
  EXPECT_TRUE(relocate(opened).empty());
}

TEST_F(CoreRecordsTest, WithoutBtfAreAnError) {
  ElfMaker elf;
  elf.code("socket", std::array{move(0), leave()});
  elf.section(".BTF.ext", extensionOf({{socket_, {{0, type_, access_, 0}}}}));
  EXPECT_THAT(errorOf(elf.bytes()), HasSubstr("no .BTF section"));
}

TEST_F(CoreRecordsTest, CorruptBtfIsAnError) {
  const Bytes extension = extensionOf({{socket_, {{0, type_, access_, 0}}}});
  const Bytes good = btf_.bytes();
  EXPECT_EQ(errorOf(object(good, extension)), "");
  for (std::size_t size = 0; size < good.size(); ++size) {
    const Bytes part(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THAT(errorOf(object(part, extension)), HasSubstr(".BTF")) << size;
  }
  for (const std::uint32_t kind : {20U, 25U, 31U}) {
    Bytes unknown = good;
    const std::uint32_t info = kind << 24U;
    std::memcpy(unknown.data() + sizeof(btf_header) + 4, &info, sizeof(info));
    EXPECT_THAT(errorOf(object(unknown, extension)), HasSubstr(".BTF section is corrupt")) << kind;
  }
}

TEST_F(CoreRecordsTest, CorruptExtensionsAreAnError) {
  const Bytes good = extensionOf({{socket_, {{0, type_, access_, 0}}}});
  for (std::size_t size = 0; size < good.size(); ++size) {
    const Bytes part(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THAT(errorOf(object(btf_.bytes(), part)), HasSubstr(".BTF.ext")) << size;
  }
}

TEST_F(CoreRecordsTest, OfASectionThatDoesNotExistFail) {
  for (const std::uint32_t name : {btf_.string("other"), 0U, 0x7fffffffU, 0xffffffffU}) {
    auto opened = open(object(btf_.bytes(), extensionOf({{name, {{0, type_, access_, 0}}}})));
    ASSERT_TRUE(opened.records) << opened.records.error().message;
    const auto relocations = relocate(opened);
    EXPECT_EQ(relocations[0].fault, core::Fault::sectionMissing);
    EXPECT_EQ(opened.records->functionOf(relocations[0]), "");
  }
}

TEST_F(CoreRecordsTest, OfASectionThatIsNoCodeFail) {
  // Only code may be written to: libbpf finds no program in anything else.
  for (const char* name : {"license", ".BTF", ".BTF.ext", ".symtab", ".strtab", ".shstrtab"}) {
    const std::uint32_t section = btf_.string(name);
    auto opened =
        open(object(btf_.bytes(), extensionOf({{section, {{0, type_, access_, 0}, {8, type_, access_, 0}}}})));
    ASSERT_TRUE(opened.records) << opened.records.error().message;
    for (const auto& each : relocate(opened)) {
      EXPECT_EQ(each.fault, core::Fault::sectionMissing) << name;
    }
  }
}

TEST_F(CoreRecordsTest, OutsideAnyFunctionHaveNone) {
  auto opened =
      open(object(btf_.bytes(), extensionOf({{socket_, {{0xfffffff8, type_, access_, 0}, {48, type_, access_, 0}}}})));
  ASSERT_TRUE(opened.records);
  for (const auto& each : relocate(opened)) {
    EXPECT_EQ(each.fault, core::Fault::instructionOutside);
    EXPECT_EQ(opened.records->functionOf(each), "");
  }
}

TEST_F(CoreRecordsTest, OfTextAreShared) {
  const std::uint32_t text = btf_.string(".text");
  auto opened = open(object(btf_.bytes(), extensionOf({{text, {{0, type_, access_, 0}}}}), ".text"));
  ASSERT_TRUE(opened.records);
  EXPECT_TRUE(opened.records->isShared(relocate(opened)[0]));
}

/// Whatever one bit of a real object's BTF or records is, each record has an outcome or the object is refused; and what
/// has been checked of the file stays true.
TEST_F(CoreRecordsTest, NoFlippedBitOfARealObjectIsACrash) {
  const Bytes good = test_support::readFile(std::string(BTFD_BPF_OBJECTS) + "/missing_field.o");
  const auto original = open(good);
  ASSERT_TRUE(original.records) << original.records.error().message;
  ASSERT_FALSE(original.records->empty());
  int refused = 0;
  int failed = 0;
  for (const char* name : {".BTF", ".BTF.ext"}) {
    const auto content = original.image->find(name)->content;
    const auto begin = static_cast<std::size_t>(content.data() - original.bytes.bytes().data());
    for (std::size_t at = 0; at < content.size(); ++at) {
      // One bit of each byte, another one of the next.
      Bytes changed = good;
      changed[begin + at] ^= static_cast<std::byte>(1U << (at % 8));
      auto opened = open(changed);
      if (!opened.records) {
        ++refused;
        continue;
      }
      const auto relocations = relocate(opened);
      failed +=
          std::ranges::any_of(relocations, [](const auto& each) { return each.outcome == core::Outcome::failed; });
      ASSERT_TRUE(CheckedImage::check(opened.bytes)) << name << " " << at;
    }
  }
  EXPECT_GT(refused, 50);
  EXPECT_GT(failed, 0);
}

/// A section's bytes may be another's too, or the section table's: what has been checked would then change unseen.
TEST_F(CoreRecordsTest, OfSectionsThatOverlapAreAnError) {
  const Bytes good = object();
  Elf64_Ehdr header{};
  std::memcpy(&header, good.data(), sizeof(header));
  const auto withSection = [&](std::size_t index, const std::function<void(Elf64_Shdr&)>& change) {
    Bytes file = good;
    Elf64_Shdr section{};
    std::byte* at = file.data() + header.e_shoff + index * sizeof(section);
    std::memcpy(&section, at, sizeof(section));
    change(section);
    std::memcpy(at, &section, sizeof(section));
    return file;
  };
  // 1 is the code, 2 the license.
  EXPECT_THAT(errorOf(withSection(1, [&](auto& section) { section.sh_offset = header.e_shoff; })),
              HasSubstr("overlap"));
  EXPECT_THAT(errorOf(withSection(1, [&](auto& section) { section.sh_offset = 0; })), HasSubstr("overlap"));
  EXPECT_THAT(errorOf(withSection(2, [&](auto& section) { section.sh_offset = sizeof(header) + 8; })),
              HasSubstr("overlap"));
  EXPECT_EQ(errorOf(withSection(2, [&](auto& section) { section.sh_size = 0; })), "");
}

} // namespace
} // namespace btfd::object
