#include "object/checked_image.h"
#include "test_support/elf_maker.h"
#include "test_support/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <tuple>
#include <utility>

#include <elf.h>

namespace btfd::object {
namespace {

using test_support::memfdOf;
using test_support::readFile;
using testing::HasSubstr;

using Bytes = std::vector<std::byte>;

std::string objectPath(const std::string& name) {
  return std::string(BTFD_BPF_OBJECTS) + "/" + name;
}

/// The image and the bytes that it refers to.
struct Checked {
  ClientBytes bytes;
  Result<CheckedImage> image;
};

Checked check(const Bytes& content, ByteOrders accepted = ByteOrders::native) {
  auto bytes = ClientBytes::read(memfdOf(content), std::uint64_t{64} << 20U);
  EXPECT_TRUE(bytes) << bytes.error().message;
  auto image = CheckedImage::check(*bytes, accepted);
  return {std::move(*bytes), std::move(image)};
}

std::string errorOf(const Bytes& content) {
  const auto checked = check(content);
  return checked.image ? "" : checked.image.error().message;
}

template <typename T>
T at(const Bytes& file, std::size_t offset) {
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(value));
  return value;
}

template <typename T>
void put(Bytes& file, std::size_t offset, const T& value) {
  std::memcpy(file.data() + offset, &value, sizeof(value));
}

/// A real object, changed in its ELF header.
Bytes withHeader(const std::function<void(Elf64_Ehdr&)>& change) {
  Bytes file = readFile(objectPath("exec_events.o"));
  auto header = at<Elf64_Ehdr>(file, 0);
  change(header);
  put(file, 0, header);
  return file;
}

/// A real object, changed in the header of its section `index`.
Bytes withSection(std::size_t index, const std::function<void(Elf64_Shdr&)>& change) {
  Bytes file = readFile(objectPath("exec_events.o"));
  const std::size_t offset = at<Elf64_Ehdr>(file, 0).e_shoff + index * sizeof(Elf64_Shdr);
  auto section = at<Elf64_Shdr>(file, offset);
  change(section);
  put(file, offset, section);
  return file;
}

TEST(CheckedImage, TakesARealObjectAndItsSections) {
  const auto checked = check(readFile(objectPath("exec_events.o")));
  ASSERT_TRUE(checked.image) << checked.image.error().message;
  EXPECT_EQ(checked.image->bytes().data(), checked.bytes.bytes().data());
  const Section* btf = checked.image->find(".BTF");
  ASSERT_NE(btf, nullptr);
  ASSERT_GE(btf->content.size(), 2U);
  EXPECT_EQ(at<std::uint16_t>({btf->content.begin(), btf->content.end()}, 0), 0xeb9f);
  const Section* license = checked.image->find("license");
  ASSERT_NE(license, nullptr);
  EXPECT_EQ(license->type, std::uint32_t{SHT_PROGBITS});
  EXPECT_EQ(checked.image->find("no such section"), nullptr);
}

TEST(CheckedImage, TakesAllOfTheProjectsObjects) {
  int objects = 0;
  for (const auto& entry : std::filesystem::directory_iterator(BTFD_BPF_OBJECTS)) {
    if (entry.path().extension() == ".o") {
      EXPECT_EQ(errorOf(readFile(entry.path())), "") << entry.path();
      ++objects;
    }
  }
  EXPECT_GT(objects, 20);
}

TEST(CheckedImage, SectionsWithoutContentInTheFileAreEmpty) {
  const auto checked = check(readFile(objectPath("global_data.o")));
  ASSERT_TRUE(checked.image) << checked.image.error().message;
  const Section* bss = checked.image->find(".bss");
  ASSERT_NE(bss, nullptr);
  EXPECT_EQ(bss->type, std::uint32_t{SHT_NOBITS});
  EXPECT_TRUE(bss->content.empty());
}

TEST(CheckedImage, WhatIsNoElfFileIsSaidToBeNone) {
  EXPECT_THAT(errorOf(test_support::bytesOf("#!/bin/sh\n")), HasSubstr("not an ELF file"));
  EXPECT_THAT(errorOf(test_support::bytesOf("\x7f")), HasSubstr("not an ELF file"));
}

TEST(CheckedImage, NoTruncationOfARealObjectIsTakenButTheLastPadding) {
  const Bytes file = readFile(objectPath("no_btf_needed.o"));
  // clang writes the section table at the end of the file, so anything less lacks a section.
  const auto header = at<Elf64_Ehdr>(file, 0);
  const std::size_t needed = header.e_shoff + std::size_t{header.e_shnum} * sizeof(Elf64_Shdr);
  for (std::size_t size = 1; size < needed; ++size) {
    const Bytes part(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_NE(errorOf(part), "") << size << " of " << file.size() << " bytes";
  }
  EXPECT_EQ(errorOf(file), "");
}

TEST(CheckedImage, AnotherMachineIsNamed) {
  EXPECT_THAT(errorOf(withHeader([](auto& header) { header.e_machine = EM_X86_64; })), HasSubstr("x86-64"));
  EXPECT_THAT(errorOf(withHeader([](auto& header) { header.e_machine = EM_AARCH64; })), HasSubstr("AArch64"));
  EXPECT_THAT(errorOf(withHeader([](auto& header) { header.e_machine = 4242; })), HasSubstr("machine 4242"));
}

TEST(CheckedImage, NoMachineAtAllIsTaken) {
  EXPECT_EQ(errorOf(withHeader([](auto& header) { header.e_machine = EM_NONE; })), "");
}

TEST(CheckedImage, TheOtherByteOrderIsRefusedWithWhatToDo) {
  EXPECT_THAT(errorOf(readFile(objectPath("big_endian/exec_events.o"))), HasSubstr("-target bpf"));
}

TEST(CheckedImage, TheOtherByteOrderIsReadAsThisOneWhereItIsTaken) {
  const auto ours = check(readFile(objectPath("exec_events.o")));
  const auto theirs = check(readFile(objectPath("big_endian/exec_events.o")), ByteOrders::any);
  ASSERT_TRUE(ours.image && theirs.image) << theirs.image.error().message;
  EXPECT_FALSE(ours.image->isForeign());
  EXPECT_TRUE(theirs.image->isForeign());
  EXPECT_TRUE(theirs.image->checkApart());

  const auto sections = [](const Section& each) {
    return std::tuple(each.name, each.type, each.link, each.information, each.isCode, each.content.size());
  };
  EXPECT_TRUE(std::ranges::equal(theirs.image->sections(), ours.image->sections(), {}, sections, sections));

  const auto symbols = [](const Symbol& each) {
    return std::tuple(each.name, each.type, each.binding, each.isVisible, each.section, each.value, each.size);
  };
  ASSERT_GT(ours.image->symbols()->size(), 5U);
  EXPECT_TRUE(std::ranges::equal(*theirs.image->symbols(), *ours.image->symbols(), {}, symbols, symbols));
  const auto functions = [](const Function& each) {
    return std::tuple(each.name, each.section, each.offset, each.size);
  };
  ASSERT_FALSE(ours.image->functions()->empty());
  EXPECT_TRUE(std::ranges::equal(*theirs.image->functions(), *ours.image->functions(), {}, functions, functions));

  const auto references = [](const CheckedImage& image) {
    return image.references(*image.find("tp_btf/sched_process_exec"));
  };
  const auto reference = [](const Reference& each) { return std::pair(each.offset, each.symbol); };
  ASSERT_FALSE(references(*ours.image).empty());
  EXPECT_TRUE(std::ranges::equal(references(*theirs.image), references(*ours.image), {}, reference, reference));
}

TEST(CheckedImage, AByteOrderThatThereIsNoneOfIsRefused) {
  const Bytes file = withHeader([](auto& header) { header.e_ident[EI_DATA] = 3; });
  const auto checked = check(file, ByteOrders::any);
  ASSERT_FALSE(checked.image);
  EXPECT_THAT(checked.image.error().message, HasSubstr("neither little-endian nor big-endian"));
}

TEST(CheckedImage, A32BitFileIsRefused) {
  EXPECT_THAT(errorOf(withHeader([](auto& header) { header.e_ident[EI_CLASS] = ELFCLASS32; })), HasSubstr("64-bit"));
}

TEST(CheckedImage, AnExecutableIsRefused) {
  EXPECT_THAT(errorOf(withHeader([](auto& header) { header.e_type = ET_EXEC; })), HasSubstr("relocatable"));
}

TEST(CheckedImage, PaddingInTheIdentificationIsOfNoImportance) {
  EXPECT_EQ(errorOf(withHeader([](auto& header) { header.e_ident[EI_PAD] = 1; })), "");
}

TEST(CheckedImage, AFileWithoutSectionTableIsRefused) {
  const auto none = [](auto& header) {
    header.e_shoff = 0;
    header.e_shnum = 0;
    header.e_shstrndx = 0;
  };
  EXPECT_THAT(errorOf(withHeader(none)), HasSubstr("section table"));
}

TEST(CheckedImage, ASectionTableOutsideTheFileIsRefused) {
  EXPECT_NE(errorOf(withHeader([](auto& header) { header.e_shoff = UINT64_MAX - 8; })), "");
  EXPECT_NE(errorOf(withHeader([](auto& header) { header.e_shnum = 0xfeff; })), "");
  EXPECT_NE(errorOf(withHeader([](auto& header) { header.e_shstrndx = 0xfe00; })), "");
}

TEST(CheckedImage, ASectionTableThatIsNotAlignedIsRefused) {
  Bytes file = readFile(objectPath("exec_events.o"));
  auto header = at<Elf64_Ehdr>(file, 0);
  // A sound table, but one byte further on.
  file.insert(file.begin() + static_cast<std::ptrdiff_t>(header.e_shoff), std::byte{0});
  ++header.e_shoff;
  put(file, 0, header);
  EXPECT_THAT(errorOf(file), HasSubstr("multiple of 8"));
}

TEST(CheckedImage, ASectionOutsideTheFileIsRefused) {
  EXPECT_THAT(errorOf(withSection(2, [](auto& section) { section.sh_offset = std::uint64_t{1} << 40U; })),
              HasSubstr("section 2 lies outside the file"));
  // Its end wraps around.
  EXPECT_THAT(errorOf(withSection(2, [](auto& section) { section.sh_size = UINT64_MAX - 16; })),
              HasSubstr("section 2 lies outside the file"));
}

TEST(CheckedImage, ASectionsNameOutsideTheStringTableIsRefused) {
  EXPECT_THAT(errorOf(withSection(2, [](auto& section) { section.sh_name = UINT32_MAX; })),
              HasSubstr("name of section 2"));
}

TEST(CheckedImage, AStringTableWithoutFinalNulIsRefused) {
  Bytes file = readFile(objectPath("exec_events.o"));
  const auto header = at<Elf64_Ehdr>(file, 0);
  const std::size_t entry = header.e_shoff + std::size_t{header.e_shstrndx} * sizeof(Elf64_Shdr);
  auto names = at<Elf64_Shdr>(file, entry);
  names.sh_size = 3; // too short for any name to end in it
  put(file, entry, names);
  EXPECT_THAT(errorOf(file), HasSubstr("string table"));
}

/// An object without BTF and CO-RE records: a program called `function` in section `section`.
Bytes objectWithNames(const std::string& section, const std::string& function) {
  test_support::ElfMaker elf;
  std::array<bpf_insn, 1> exit{};
  exit[0].code = BPF_JMP | BPF_EXIT;
  elf.function(function, elf.code(section, exit), 0, 1);
  return elf.bytes();
}

TEST(CheckedImage, NamesAreAsLongAsTheKernelsAtMost) {
  const std::string longest(kLongestName, 'x');
  EXPECT_EQ(errorOf(objectWithNames(longest, longest)), "");
  EXPECT_THAT(errorOf(objectWithNames(longest + "x", "f")), HasSubstr("name of section 1 is longer than 511 bytes"));
  EXPECT_THAT(errorOf(objectWithNames("socket", longest + "x")),
              HasSubstr("name of symbol 1 is longer than 511 bytes"));
  EXPECT_THAT(errorOf(objectWithNames("socket", std::string(5'000'000, 'x'))), HasSubstr("is longer than 511 bytes"));
}

TEST(CheckedImage, ASymbolTableThatIsBrokenIsRefused) {
  const auto withSymbolTable = [](const std::function<void(Elf64_Shdr&)>& change) {
    Bytes file = objectWithNames("socket", "f");
    const auto header = at<Elf64_Ehdr>(file, 0);
    for (std::size_t i = 1; i < header.e_shnum; ++i) {
      const std::size_t entry = header.e_shoff + i * sizeof(Elf64_Shdr);
      auto section = at<Elf64_Shdr>(file, entry);
      if (section.sh_type == SHT_SYMTAB) {
        change(section);
        put(file, entry, section);
      }
    }
    return file;
  };
  EXPECT_EQ(errorOf(withSymbolTable([](auto&) {})), "");
  EXPECT_THAT(errorOf(withSymbolTable([](auto& table) { table.sh_link = 0; })), HasSubstr("symbol table is broken"));
  EXPECT_THAT(errorOf(withSymbolTable([](auto& table) { table.sh_link = 99; })), HasSubstr("symbol table is broken"));
  EXPECT_THAT(errorOf(withSymbolTable([](auto& table) { --table.sh_size; })), HasSubstr("symbol table is broken"));
}

TEST(CheckedImage, ASymbolsNameOutsideTheStringTableIsRefused) {
  Bytes file = objectWithNames("socket", "f");
  const auto header = at<Elf64_Ehdr>(file, 0);
  for (std::size_t i = 1; i < header.e_shnum; ++i) {
    const auto section = at<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type == SHT_SYMTAB) {
      auto symbol = at<Elf64_Sym>(file, section.sh_offset + sizeof(Elf64_Sym));
      symbol.st_name = UINT32_MAX;
      put(file, section.sh_offset + sizeof(Elf64_Sym), symbol);
    }
  }
  EXPECT_THAT(errorOf(file), HasSubstr("name of symbol 1 lies outside"));
}

TEST(CheckedImage, LegacyMapsAreRefusedWithWhatToDo) {
  Bytes file = readFile(objectPath("maps.o"));
  // ".maps" becomes "maps": the name begins a byte later.
  const auto header = at<Elf64_Ehdr>(file, 0);
  const auto names = at<Elf64_Shdr>(file, header.e_shoff + std::size_t{header.e_shstrndx} * sizeof(Elf64_Shdr));
  bool changed = false;
  for (std::size_t i = 1; i < header.e_shnum; ++i) {
    const std::size_t entry = header.e_shoff + i * sizeof(Elf64_Shdr);
    auto section = at<Elf64_Shdr>(file, entry);
    const auto* name = reinterpret_cast<const char*>(file.data()) + names.sh_offset + section.sh_name; // NOLINT
    if (std::string_view(name) == ".maps") {
      ++section.sh_name;
      put(file, entry, section);
      changed = true;
    }
  }
  ASSERT_TRUE(changed);
  EXPECT_THAT(errorOf(file), HasSubstr("SEC(\".maps\")"));
}

TEST(CheckedImage, ASecondSectionWithBtfIsRefused) {
  for (const char* name : {".BTF", ".BTF.ext"}) {
    test_support::ElfMaker maker;
    maker.section(name, {});
    EXPECT_EQ(errorOf(maker.bytes()), "");
    maker.section(name, {});
    EXPECT_THAT(errorOf(maker.bytes()), HasSubstr("two sections called " + std::string(name)));
  }
}

/// Whatever one bit of the ELF header or section table is, it is an error or fine, but never a crash.
TEST(CheckedImage, NoFlippedBitOfItsStructureIsACrash) {
  const Bytes file = readFile(objectPath("no_btf_needed.o"));
  const auto header = at<Elf64_Ehdr>(file, 0);
  int refused = 0;
  const auto flip = [&](std::size_t offset) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      Bytes changed = file;
      changed[offset] ^= static_cast<std::byte>(1U << bit);
      refused += errorOf(changed).empty() ? 0 : 1;
    }
  };
  for (std::size_t offset = 0; offset < sizeof(header); ++offset) {
    flip(offset);
  }
  for (std::size_t offset = header.e_shoff; offset < header.e_shoff + 6 * sizeof(Elf64_Shdr); ++offset) {
    flip(offset);
  }
  EXPECT_GT(refused, 100);
}

} // namespace
} // namespace btfd::object
