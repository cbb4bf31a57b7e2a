#pragma once

#include "base/error.h"
#include "client_bytes.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace btfd::object {

/// The longest name of a section or symbol that is taken, in bytes: that of the kernel's symbols (KSYM_NAME_LEN in
/// include/linux/kallsyms.h). Else a table of thousands could refer to one name of megabytes. Programs and maps are
/// called as their symbols are.
inline constexpr std::size_t kLongestName = 511;

/// A section of an object file, in its bytes.
struct Section {
  std::string_view name;
  /// sh_type, sh_link and sh_info (elf.h).
  std::uint32_t type = 0;
  std::uint32_t link = 0;
  std::uint32_t information = 0;
  /// Whether it holds programs (SHT_PROGBITS with SHF_EXECINSTR).
  bool isCode = false;
  /// Empty for SHT_NOBITS.
  std::span<const std::byte> content;
};

/// A function of an object file, as its symbol table has it.
struct Function {
  std::string_view name;
  /// Number of its section in the file's section table.
  std::size_t section = 0;
  /// Within the section, in bytes.
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// A symbol of an object file.
struct Symbol {
  std::string_view name;
  /// STT_FUNC and the like, and STB_GLOBAL and the like (elf.h).
  std::uint8_t type = 0;
  std::uint8_t binding = 0;
  /// Whether other object files may see it: neither hidden nor internal.
  bool isVisible = true;
  /// Number of its section in the file's section table; SHN_UNDEF for what the kernel is to supply.
  std::size_t section = 0;
  /// Within the section, in bytes.
  std::uint64_t value = 0;
  std::uint64_t size = 0;
};

/// Where code refers to a symbol.
struct Reference {
  /// Of the instruction, in bytes, within its section.
  std::uint64_t offset = 0;
  /// Its number in the symbol table.
  std::size_t symbol = 0;
};

/// Which byte orders an object may be in: only programs in the machine's own can be loaded, but all can be relocated.
enum class ByteOrders : std::uint8_t { native, any };

/// A client's object whose ELF structure has been checked: it is a 64-bit relocatable file for BPF in a byte order that
/// was asked for, its section table, symbol tables, names and contents lie within it, and no name is longer than
/// kLongestName. What the sections hold is still the client's word.
///
/// Refers to the bytes it was made from, which must outlive it.
class CheckedImage {
 public:
  /// Checks `bytes`. The error says what is wrong with the file and, where there is one, what to do about it.
  static Result<CheckedImage> check(const ClientBytes& bytes, ByteOrders accepted = ByteOrders::native);

  [[nodiscard]] std::span<const Section> sections() const { return sections_; }

  /// The first section called `name`, or null.
  [[nodiscard]] const Section* find(std::string_view name) const;

  /// The number in the file's section table of `section`, one of sections().
  [[nodiscard]] std::size_t indexOf(const Section& section) const {
    return static_cast<std::size_t>(&section - sections_.data()) + 1;
  }

  /// Nothing if no byte of the file belongs to two sections, or to a section and the ELF header or section table: only
  /// then a section may be written to without that anything else changes that has been checked.
  [[nodiscard]] Result<void> checkApart() const;

  /// The functions of the symbol table, by section and offset; an error if the table is broken.
  [[nodiscard]] Result<std::vector<Function>> functions() const;

  /// All symbols, by their numbers in the symbol table; an error if the table is broken.
  [[nodiscard]] Result<std::vector<Symbol>> symbols() const;

  /// What the code in `section`, one of sections(), refers to, by offset. Symbols may have numbers that there are none
  /// of.
  [[nodiscard]] std::vector<Reference> references(const Section& section) const;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  /// Whether the object, instructions and all, is in the other byte order than this machine's.
  [[nodiscard]] bool isForeign() const { return isForeign_; }

 private:
  std::span<const std::byte> bytes_;
  bool isForeign_ = false;
  std::vector<Section> sections_;
};

} // namespace btfd::object
