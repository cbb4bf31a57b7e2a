#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <elf.h>
#include <linux/bpf.h>

namespace btfd::test_support {

/// A BPF object file made by hand: sections, and the functions in them.
class ElfMaker {
 public:
  ElfMaker() { sections_.push_back({}); }

  /// The section's number.
  std::size_t section(std::string name, std::span<const std::byte> content, std::uint64_t flags = 0) {
    sections_.push_back({.name = std::move(name),
                         .type = SHT_PROGBITS,
                         .flags = flags,
                         .content = {content.begin(), content.end()},
                         .link = 0,
                         .information = 0,
                         .entry = 0});
    return sections_.size() - 1;
  }

  std::size_t code(std::string name, std::span<const bpf_insn> instructions) {
    return section(std::move(name), std::as_bytes(instructions), SHF_ALLOC | SHF_EXECINSTR);
  }

  /// What the file is for; EM_BPF if it is not said.
  void machine(Elf64_Half machine) { machine_ = machine; }

  /// A global function of `instructions` instructions, which begins with number `first` of section `section`.
  void function(std::string name, std::size_t section, std::size_t first, std::size_t instructions) {
    functions_.push_back(
        {std::move(name), section, first * sizeof(bpf_insn), instructions * sizeof(bpf_insn), STB_GLOBAL});
  }

  /// The same, but a static one.
  void localFunction(std::string name, std::size_t section, std::size_t first, std::size_t instructions) {
    functions_.push_back(
        {std::move(name), section, first * sizeof(bpf_insn), instructions * sizeof(bpf_insn), STB_LOCAL});
  }

  /// The file.
  [[nodiscard]] std::vector<std::byte> bytes() const {
    std::vector<Section> sections = sections_;
    addSymbols(sections);
    std::string names(1, '\0');
    std::vector<Elf64_Shdr> headers;
    sections.push_back(
        {.name = ".shstrtab", .type = SHT_STRTAB, .flags = 0, .content = {}, .link = 0, .information = 0, .entry = 0});
    std::vector<std::byte> file(sizeof(Elf64_Ehdr));
    for (Section& each : sections) {
      Elf64_Shdr& header = headers.emplace_back();
      header.sh_name = each.name.empty() ? 0 : static_cast<Elf64_Word>(names.size());
      if (!each.name.empty()) {
        names += each.name;
        names += '\0';
      }
      if (&each == &sections.back()) {
        const auto text = std::as_bytes(std::span(names));
        each.content.assign(text.begin(), text.end());
      }
      header.sh_type = each.type;
      header.sh_flags = each.flags;
      header.sh_offset = each.type == SHT_NULL ? 0 : file.size();
      header.sh_size = each.content.size();
      header.sh_link = each.link;
      header.sh_info = each.information;
      header.sh_addralign = each.type == SHT_NULL ? 0 : 8;
      header.sh_entsize = each.entry;
      file.insert(file.end(), each.content.begin(), each.content.end());
      file.resize((file.size() + 7) / 8 * 8);
    }
    Elf64_Ehdr header{};
    std::memcpy(static_cast<void*>(header.e_ident), ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_REL;
    header.e_machine = machine_;
    header.e_version = EV_CURRENT;
    header.e_shoff = file.size();
    header.e_ehsize = sizeof(header);
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(headers.size());
    header.e_shstrndx = static_cast<Elf64_Half>(headers.size() - 1);
    std::memcpy(file.data(), &header, sizeof(header));
    const auto table = std::as_bytes(std::span(headers));
    file.insert(file.end(), table.begin(), table.end());
    return file;
  }

 private:
  struct Section {
    std::string name;
    Elf64_Word type = SHT_NULL;
    std::uint64_t flags = 0;
    std::vector<std::byte> content;
    Elf64_Word link = 0;
    Elf64_Word information = 0;
    Elf64_Xword entry = 0;
  };

  struct Function {
    std::string name;
    std::size_t section;
    std::uint64_t offset;
    std::uint64_t size;
    unsigned binding;
  };

  void addSymbols(std::vector<Section>& sections) const {
    std::string names(1, '\0');
    std::vector<Elf64_Sym> symbols(1);
    for (const Function& each : functions_) {
      Elf64_Sym& symbol = symbols.emplace_back();
      symbol.st_name = static_cast<Elf64_Word>(names.size());
      symbol.st_info = static_cast<unsigned char>(ELF64_ST_INFO(each.binding, STT_FUNC));
      symbol.st_shndx = static_cast<Elf64_Section>(each.section);
      symbol.st_value = each.offset;
      symbol.st_size = each.size;
      names += each.name;
      names += '\0';
    }
    const auto table = std::as_bytes(std::span(symbols));
    const auto text = std::as_bytes(std::span(names));
    sections.push_back({.name = ".strtab",
                        .type = SHT_STRTAB,
                        .flags = 0,
                        .content = {text.begin(), text.end()},
                        .link = 0,
                        .information = 0,
                        .entry = 0});
    sections.push_back({.name = ".symtab",
                        .type = SHT_SYMTAB,
                        .flags = 0,
                        .content = {table.begin(), table.end()},
                        .link = static_cast<Elf64_Word>(sections.size() - 1),
                        .information = 1,
                        .entry = sizeof(Elf64_Sym)});
  }

  Elf64_Half machine_ = EM_BPF;
  std::vector<Section> sections_;
  std::vector<Function> functions_;
};

/// One CO-RE record of CoreSection.
struct CoreRecord {
  std::uint32_t instructionOffset = 0;
  std::uint32_t type = 0;
  std::uint32_t access = 0;
  std::uint32_t kind = 0;
};

/// A section with CO-RE records: offset of its name in the BTF's strings, and what is to be done in it.
using CoreSection = std::pair<std::uint32_t, std::vector<CoreRecord>>;

/// A .BTF.ext section with nothing but CO-RE records.
inline std::vector<std::byte> extensionOf(const std::vector<CoreSection>& sections) {
  constexpr std::uint32_t kHeader = 32;
  constexpr std::uint32_t kRecord = 16;
  std::vector<std::uint32_t> words = {kRecord};
  for (const auto& [name, records] : sections) {
    words.insert(words.end(), {name, static_cast<std::uint32_t>(records.size())});
    for (const CoreRecord& each : records) {
      words.insert(words.end(), {each.instructionOffset, each.type, each.access, each.kind});
    }
  }
  const auto length = static_cast<std::uint32_t>(words.size() * 4);
  std::vector<std::uint32_t> all = {std::endian::native == std::endian::little ? 0x0001eb9fU : 0xeb9f0100U,
                                    kHeader,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    sections.empty() ? 0 : length};
  all.insert(all.end(), words.begin(), words.end());
  const auto bytes = std::as_bytes(std::span(all));
  return {bytes.begin(), bytes.end()};
}

} // namespace btfd::test_support
