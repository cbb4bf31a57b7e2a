#include "code.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <elf.h>

namespace btfd::check {

namespace {

constexpr std::size_t kBytes = sizeof(bpf_insn);

} // namespace

Result<Code> Code::read(const object::CheckedImage& image) {
  Code code;
  auto symbols = image.symbols();
  if (!symbols) {
    return std::unexpected(std::move(symbols.error()));
  }
  code.symbols_ = std::move(*symbols);
  code.isForeign_ = image.isForeign();
  for (const object::Section& section : image.sections()) {
    if (section.isCode) {
      const auto offset = section.content.empty() ? 0 : section.content.data() - image.bytes().data();
      code.sections_.push_back({.number = image.indexOf(section),
                                .name = section.name,
                                .fileOffset = static_cast<std::size_t>(offset),
                                .instructions = section.content.size() / kBytes,
                                .references = image.references(section)});
    } else if (section.name.starts_with(".rodata")) {
      code.constants_.emplace_back(image.indexOf(section), section.content);
    }
  }
  code.readSymbols();
  return code;
}

void Code::readSymbols() {
  for (const object::Symbol& symbol : symbols_) {
    if (symbol.section == SHN_UNDEF) {
      undefined_.emplace(symbol.name, &symbol);
    }
    const Section* section = symbol.type == STT_FUNC ? find(symbol.section) : nullptr;
    const std::size_t begin = symbol.value / kBytes;
    if (section == nullptr || symbol.value % kBytes != 0 || begin >= section->instructions) {
      continue;
    }
    functions_.push_back({.name = symbol.name,
                          .begin = {.section = symbol.section, .instruction = begin},
                          .end = begin + std::min<std::size_t>(symbol.size / kBytes, section->instructions - begin),
                          .isGlobal = symbol.binding != STB_LOCAL && symbol.isVisible});
  }
  std::ranges::sort(functions_, {}, &CodeFunction::begin);
}

const Code::Section* Code::find(std::size_t number) const {
  const auto found = std::ranges::lower_bound(sections_, number, {}, &Section::number);
  return found != sections_.end() && found->number == number ? &*found : nullptr;
}

bpf_insn Code::instructionAt(const Place& place, std::span<const std::byte> image) const {
  bpf_insn instruction{};
  std::memcpy(&instruction, image.data() + find(place.section)->fileOffset + place.instruction * kBytes, kBytes);
  if (isForeign_) {
    // The registers are halves of a byte that have changed places, too.
    const bpf_insn read = instruction;
    instruction.dst_reg = read.src_reg;
    instruction.src_reg = read.dst_reg;
    instruction.off = std::byteswap(read.off);
    instruction.imm = std::byteswap(read.imm);
  }
  return instruction;
}

const CodeFunction* Code::functionAt(const Place& place) const {
  const auto after = std::ranges::upper_bound(functions_, place, {}, &CodeFunction::begin);
  if (after == functions_.begin()) {
    return nullptr;
  }
  const CodeFunction& function = *std::prev(after);
  return function.begin.section == place.section && place.instruction < function.end ? &function : nullptr;
}

const object::Symbol* Code::findUndefined(std::string_view name) const {
  const auto found = undefined_.find(name);
  return found == undefined_.end() ? nullptr : found->second;
}

const object::Reference* Code::referenceAt(const Place& place) const {
  const Section* section = find(place.section);
  if (section == nullptr) {
    return nullptr;
  }
  const std::uint64_t offset = std::uint64_t{place.instruction} * kBytes;
  const auto found = std::ranges::lower_bound(section->references, offset, {}, &object::Reference::offset);
  return found != section->references.end() && found->offset == offset ? &*found : nullptr;
}

std::optional<Referred> Code::referredBy(const Place& place, const bpf_insn& instruction) const {
  const bool isCall = instruction.code == (BPF_JMP | BPF_CALL);
  const object::Reference* reference = referenceAt(place);
  if (reference == nullptr) {
    if (!isCall || instruction.src_reg != BPF_PSEUDO_CALL) {
      return std::nullopt;
    }
    const std::int64_t target = static_cast<std::int64_t>(place.instruction) + instruction.imm + 1;
    return Referred{.symbol = nullptr, .code = Place{place.section, static_cast<std::size_t>(target)}};
  }
  if (reference->symbol >= symbols_.size()) {
    return std::nullopt;
  }
  const object::Symbol& symbol = symbols_[reference->symbol];
  Referred referred{.symbol = &symbol, .code = std::nullopt};
  const auto addend = static_cast<std::int64_t>(instruction.imm);
  if (find(symbol.section) != nullptr) {
    // As libbpf has it (bpf_object__reloc_code): calls count in instructions, one less; addresses in bytes.
    const auto base = static_cast<std::int64_t>(symbol.value / kBytes);
    const std::int64_t target = isCall ? base + addend + 1 : base + addend / static_cast<std::int64_t>(kBytes);
    referred.code = Place{symbol.section, static_cast<std::size_t>(target)};
  } else {
    referred.dataOffset = symbol.value + static_cast<std::uint64_t>(addend);
  }
  return referred;
}

std::span<const std::byte> Code::constants(std::size_t number) const {
  const auto found = std::ranges::find(constants_, number, &std::pair<std::size_t, std::span<const std::byte>>::first);
  return found == constants_.end() ? std::span<const std::byte>{} : found->second;
}

} // namespace btfd::check
