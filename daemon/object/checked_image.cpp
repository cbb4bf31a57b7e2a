#include "checked_image.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <elf.h>
#include <libelf.h>

namespace btfd::object {

namespace {

struct ElfDeleter {
  void operator()(Elf* elf) const { elf_end(elf); }
};

using ElfHandle = std::unique_ptr<Elf, ElfDeleter>;

/// More than any compiler makes of one source, and few enough to walk in no time.
constexpr std::size_t kMaximumSections = 65536;

std::string elfError() {
  const char* message = elf_errmsg(-1);
  return message == nullptr ? "unknown error" : message;
}

std::string machineName(Elf64_Half machine) {
  switch (machine) {
  case EM_X86_64:
    return "x86-64";
  case EM_AARCH64:
    return "AArch64";
  case EM_386:
    return "Intel 80386";
  case EM_RISCV:
    return "RISC-V";
  case EM_S390:
    return "IBM S/390";
  case EM_PPC64:
    return "PowerPC64";
  default:
    return "machine " + std::to_string(machine);
  }
}

/// `value` as it stands in a file, in this machine's byte order.
template <typename T>
T inOrder(T value, bool isForeign) {
  return isForeign ? std::byteswap(value) : value;
}

bool isForeign(std::span<const std::byte> bytes) {
  constexpr auto kNative = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  return std::to_integer<unsigned>(bytes[EI_DATA]) != kNative;
}

Result<void> checkIdentification(std::span<const std::byte> bytes, ByteOrders accepted) {
  if (bytes.size() < SELFMAG || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0) {
    return fail("not an ELF file: it does not begin with \\x7fELF", EINVAL);
  }
  if (bytes.size() < sizeof(Elf64_Ehdr)) {
    return fail("the file is cut off: " + std::to_string(bytes.size()) + " bytes do not hold an ELF header", EINVAL);
  }
  const auto identification = [&](std::size_t index) { return std::to_integer<unsigned>(bytes[index]); };
  if (identification(EI_CLASS) != ELFCLASS64) {
    return fail("not a 64-bit ELF file; BPF objects are", EINVAL);
  }
  const unsigned order = identification(EI_DATA);
  if (order != ELFDATA2LSB && order != ELFDATA2MSB) {
    return fail("the file is neither little-endian nor big-endian: it is damaged", EINVAL);
  }
  if (accepted == ByteOrders::native && isForeign(bytes)) {
    const bool bigEndian = order == ELFDATA2MSB;
    return fail(bigEndian
                    ? "the object is big-endian, but this machine is little-endian; compile it with -target bpfel"
                    : "the object is not in this machine's byte order; compile it with -target bpf on this machine",
                EINVAL);
  }
  return {};
}

Result<void> checkHeader(const Elf64_Ehdr& header) {
  // Before LLVM knew EM_BPF it wrote EM_NONE; libbpf takes both (bpf_object__elf_init).
  if (header.e_machine != EM_BPF && header.e_machine != EM_NONE) {
    return fail("the file is for " + machineName(header.e_machine) + ", not for BPF; compile it with -target bpf",
                EINVAL);
  }
  if (header.e_type != ET_REL) {
    return fail("the file is no relocatable object (e_type is " + std::to_string(header.e_type) +
                    "); clang -target bpf -c makes one",
                EINVAL);
  }
  // libelf, and libbpf after it, read the table in place.
  if (header.e_shoff % alignof(Elf64_Shdr) != 0) {
    return fail("the file's section table lies at offset " + std::to_string(header.e_shoff) +
                    ", which is no multiple of 8: the file is damaged",
                EINVAL);
  }
  return {};
}

std::span<const std::byte> contentOf(std::span<const std::byte> bytes, const Elf64_Shdr& header) {
  return header.sh_type == SHT_NOBITS || header.sh_type == SHT_NULL ? std::span<const std::byte>{}
                                                                    : bytes.subspan(header.sh_offset, header.sh_size);
}

bool liesWithin(std::size_t size, const Elf64_Shdr& header) {
  return header.sh_type == SHT_NOBITS || header.sh_type == SHT_NULL ||
         (header.sh_offset <= size && header.sh_size <= size - header.sh_offset);
}

/// The string at `offset` of a string table, which is the name of `what` number `index`.
Result<std::string_view> nameAt(std::span<const std::byte> table, std::size_t offset, std::string_view what,
                                std::size_t index) {
  const auto refuse = [&](const std::string& why) {
    return fail("the name of " + std::string(what) + " " + std::to_string(index) + " " + why, EINVAL);
  };
  const std::size_t left = table.size() - std::min(offset, table.size());
  const std::string_view rest(reinterpret_cast<const char*>(table.data()) + (table.size() - left), // NOLINT
                              std::min(left, kLongestName + 1));
  const auto end = rest.find('\0');
  if (end != std::string_view::npos) {
    return rest.substr(0, end);
  }
  return left > kLongestName ? refuse("is longer than " + std::to_string(kLongestName) + " bytes")
                             : refuse("lies outside the file's string table");
}

/// The header of section `index`, whose content lies within `bytes`.
Result<const Elf64_Shdr*> readHeader(std::span<const std::byte> bytes, Elf& elf, std::size_t index) {
  Elf_Scn* section = elf_getscn(&elf, index);
  const Elf64_Shdr* header = section == nullptr ? nullptr : elf64_getshdr(section);
  if (header == nullptr) {
    return fail("section " + std::to_string(index) + " cannot be read: " + elfError(), EINVAL);
  }
  if (!liesWithin(bytes.size(), *header)) {
    return fail("section " + std::to_string(index) + " lies outside the file, which may be cut off", EINVAL);
  }
  return header;
}

Result<std::vector<Section>> readSections(std::span<const std::byte> bytes, Elf& elf) {
  std::size_t count = 0;
  std::size_t nameSection = 0;
  if (elf_getshdrnum(&elf, &count) < 0 || elf_getshdrstrndx(&elf, &nameSection) < 0) {
    return fail("the file's section table is broken: " + elfError(), EINVAL);
  }
  if (count == 0 || nameSection == SHN_UNDEF || nameSection >= count) {
    return fail("the file has no section table, or it is cut off", EINVAL);
  }
  if (count > kMaximumSections) {
    return fail("the file has " + std::to_string(count) + " sections; at most " + std::to_string(kMaximumSections) +
                    " are allowed",
                E2BIG);
  }
  const auto nameHeader = readHeader(bytes, elf, nameSection);
  if (!nameHeader) {
    return std::unexpected(nameHeader.error());
  }
  const auto names = contentOf(bytes, **nameHeader);
  std::vector<Section> sections;
  sections.reserve(count);
  for (std::size_t index = 1; index < count; ++index) {
    const auto header = readHeader(bytes, elf, index);
    if (!header) {
      return std::unexpected(header.error());
    }
    const auto name = nameAt(names, (*header)->sh_name, "section", index);
    if (!name) {
      return std::unexpected(name.error());
    }
    sections.push_back({.name = *name,
                        .type = (*header)->sh_type,
                        .link = (*header)->sh_link,
                        .information = (*header)->sh_info,
                        .isCode = (*header)->sh_type == SHT_PROGBITS && ((*header)->sh_flags & SHF_EXECINSTR) != 0,
                        .content = contentOf(bytes, **header)});
  }
  return sections;
}

Result<void> refuseLegacy(const CheckedImage& image) {
  // libbpf 1.0 gave them up (libbpf/libbpf wiki, "Libbpf: the road to v1.0").
  if (image.find("maps") != nullptr) {
    return fail("the object declares maps in a 'maps' section, the form that libbpf gave up with 1.0; declare them in "
                "SEC(\".maps\") with BTF",
                ENOTSUP);
  }
  return {};
}

/// Of two sections with BTF, libbpf takes the last (bpf_object__elf_collect) and others the first: what one has checked
/// and relocated would not be what the other loads.
Result<void> refuseSecondBtf(const CheckedImage& image) {
  for (const std::string_view name : {".BTF", ".BTF.ext"}) {
    if (std::ranges::count(image.sections(), name, &Section::name) > 1) {
      return fail("the object has two sections called " + std::string(name) + ": the file is damaged", EINVAL);
    }
  }
  return {};
}

/// The symbols of `table`, one of `sections`, and the string table with their names.
struct Symbols {
  std::span<const std::byte> table;
  std::span<const std::byte> names;
  bool isForeign = false;

  static Result<Symbols> of(const Section& table, const CheckedImage& image) {
    const auto sections = image.sections();
    if (table.link == 0 || table.link > sections.size() || table.content.size() % sizeof(Elf64_Sym) != 0) {
      return fail("the file's symbol table is broken", EINVAL);
    }
    return Symbols{.table = table.content, .names = sections[table.link - 1].content, .isForeign = image.isForeign()};
  }

  [[nodiscard]] std::size_t size() const { return table.size() / sizeof(Elf64_Sym); }

  [[nodiscard]] Elf64_Sym at(std::size_t index) const {
    Elf64_Sym symbol{};
    std::memcpy(&symbol, table.data() + index * sizeof(symbol), sizeof(symbol));
    symbol.st_name = inOrder(symbol.st_name, isForeign);
    symbol.st_shndx = inOrder(symbol.st_shndx, isForeign);
    symbol.st_value = inOrder(symbol.st_value, isForeign);
    symbol.st_size = inOrder(symbol.st_size, isForeign);
    return symbol;
  }

  [[nodiscard]] Result<std::string_view> nameOf(const Elf64_Sym& symbol, std::size_t index) const {
    return nameAt(names, symbol.st_name, "symbol", index);
  }
};

Result<void> refuseBadSymbols(const CheckedImage& image) {
  const auto table = std::ranges::find(image.sections(), std::uint32_t{SHT_SYMTAB}, &Section::type);
  if (table == image.sections().end()) {
    return {};
  }
  if (std::ranges::count(image.sections(), std::uint32_t{SHT_SYMTAB}, &Section::type) > 1) {
    return fail("the object has two symbol tables: the file is damaged", EINVAL); // libbpf says so, too
  }
  const auto symbols = Symbols::of(*table, image);
  if (!symbols) {
    return std::unexpected(symbols.error());
  }
  for (std::size_t index = 1; index < symbols->size(); ++index) { // the first is none (ELF's STN_UNDEF)
    if (const auto name = symbols->nameOf(symbols->at(index), index); !name) {
      return std::unexpected(name.error());
    }
  }
  return {};
}

} // namespace

Result<CheckedImage> CheckedImage::check(const ClientBytes& bytes, ByteOrders accepted) {
  CheckedImage image;
  image.bytes_ = bytes.bytes();
  if (auto checked = checkIdentification(image.bytes_, accepted); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  image.isForeign_ = object::isForeign(image.bytes_);
  if (elf_version(EV_CURRENT) == EV_NONE) {
    return fail("libelf is too old: " + elfError(), ENOSYS);
  }
  // libelf takes a pointer to non-const, but does not write in ELF_C_READ's way of use.
  auto* memory = const_cast<char*>(reinterpret_cast<const char*>(image.bytes_.data())); // NOLINT
  const ElfHandle elf(elf_memory(memory, image.bytes_.size()));
  const Elf64_Ehdr* header = elf ? elf64_getehdr(elf.get()) : nullptr;
  if (header == nullptr) {
    return fail("the file's ELF header is broken: " + elfError(), EINVAL);
  }
  if (auto checked = checkHeader(*header); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  auto sections = readSections(image.bytes_, *elf);
  if (!sections) {
    return std::unexpected(std::move(sections.error()));
  }
  image.sections_ = std::move(*sections);
  for (const auto refuse : {&refuseLegacy, &refuseSecondBtf, &refuseBadSymbols}) {
    if (auto checked = refuse(image); !checked) {
      return std::unexpected(std::move(checked.error()));
    }
  }
  return image;
}

const Section* CheckedImage::find(std::string_view name) const {
  const auto found = std::ranges::find(sections_, name, &Section::name);
  return found == sections_.end() ? nullptr : &*found;
}

Result<void> CheckedImage::checkApart() const {
  struct Extent {
    const std::byte* begin;
    const std::byte* end;
  };

  Elf64_Ehdr header{};
  std::memcpy(&header, bytes_.data(), sizeof(header));
  const std::byte* table = bytes_.data() + inOrder(header.e_shoff, isForeign_);
  std::vector<Extent> extents = {{bytes_.data(), bytes_.data() + sizeof(header)},
                                 {table, table + (sections_.size() + 1) * sizeof(Elf64_Shdr)}};
  for (const Section& section : sections_) {
    if (!section.content.empty()) {
      extents.push_back({section.content.data(), section.content.data() + section.content.size()});
    }
  }
  std::ranges::sort(extents, {}, &Extent::begin);
  const auto overlap = [](const Extent& left, const Extent& right) { return right.begin < left.end; };
  if (std::ranges::adjacent_find(extents, overlap) != extents.end()) {
    return fail("sections of the file overlap, or lie over its headers: the file is damaged", EINVAL);
  }
  return {};
}

Result<std::vector<Function>> CheckedImage::functions() const {
  const auto table = std::ranges::find(sections_, std::uint32_t{SHT_SYMTAB}, &Section::type);
  std::vector<Function> functions;
  if (table == sections_.end()) {
    return functions;
  }
  const auto symbols = Symbols::of(*table, *this);
  if (!symbols) {
    return std::unexpected(symbols.error());
  }
  for (std::size_t index = 1; index < symbols->size(); ++index) {
    const Elf64_Sym symbol = symbols->at(index);
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) { // NOLINT
      continue;
    }
    const auto name = symbols->nameOf(symbol, index);
    if (!name) {
      return std::unexpected(name.error());
    }
    functions.push_back({.name = *name, .section = symbol.st_shndx, .offset = symbol.st_value, .size = symbol.st_size});
  }
  std::ranges::sort(functions, {}, [](const Function& each) { return std::pair(each.section, each.offset); });
  return functions;
}

Result<std::vector<Symbol>> CheckedImage::symbols() const {
  const auto table = std::ranges::find(sections_, std::uint32_t{SHT_SYMTAB}, &Section::type);
  std::vector<Symbol> found;
  if (table == sections_.end()) {
    return found;
  }
  const auto symbols = Symbols::of(*table, *this);
  if (!symbols) {
    return std::unexpected(symbols.error());
  }
  found.reserve(symbols->size());
  for (std::size_t index = 0; index < symbols->size(); ++index) {
    const Elf64_Sym symbol = symbols->at(index);
    const auto name = index == 0 ? Result<std::string_view>{} : symbols->nameOf(symbol, index);
    if (!name) {
      return std::unexpected(name.error());
    }
    const auto visibility = ELF64_ST_VISIBILITY(symbol.st_other); // NOLINT
    found.push_back({.name = *name,
                     .type = static_cast<std::uint8_t>(ELF64_ST_TYPE(symbol.st_info)),    // NOLINT
                     .binding = static_cast<std::uint8_t>(ELF64_ST_BIND(symbol.st_info)), // NOLINT
                     .isVisible = visibility != STV_HIDDEN && visibility != STV_INTERNAL,
                     .section = symbol.st_shndx,
                     .value = symbol.st_value,
                     .size = symbol.st_size});
  }
  return found;
}

std::vector<Reference> CheckedImage::references(const Section& section) const {
  std::vector<Reference> references;
  for (const Section& table : sections_) {
    if (table.type != SHT_REL || table.information != indexOf(section)) {
      continue;
    }
    for (std::size_t at = 0; at + sizeof(Elf64_Rel) <= table.content.size(); at += sizeof(Elf64_Rel)) {
      Elf64_Rel entry{};
      std::memcpy(&entry, table.content.data() + at, sizeof(entry));
      references.push_back({.offset = inOrder(entry.r_offset, isForeign_),
                            .symbol = ELF64_R_SYM(inOrder(entry.r_info, isForeign_))}); // NOLINT
    }
  }
  std::ranges::sort(references, {}, &Reference::offset);
  return references;
}

} // namespace btfd::object
