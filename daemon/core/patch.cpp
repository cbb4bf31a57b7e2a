#include "patch.h"

#include <bit>
#include <cstring>
#include <limits>

#include <linux/bpf.h>

namespace btfd::core {

namespace {

constexpr std::size_t kInstruction = sizeof(struct bpf_insn);

/// An instruction's slot in a section. Registers stay as they are, so only the numbers know of byte orders.
class Slot {
 public:
  Slot(std::byte* at, bool foreign) : at_(at), foreign_(foreign) {}

  [[nodiscard]] std::uint8_t code() const { return std::to_integer<std::uint8_t>(at_[0]); }

  [[nodiscard]] std::uint8_t registers() const { return std::to_integer<std::uint8_t>(at_[1]); }

  [[nodiscard]] std::int16_t offset() const { return static_cast<std::int16_t>(order(load<std::uint16_t>(2))); }

  [[nodiscard]] std::int32_t immediate() const { return static_cast<std::int32_t>(order(load<std::uint32_t>(4))); }

  /// The source register, which is in the high half on little-endian machines.
  [[nodiscard]] std::uint8_t source() const {
    const bool little = (std::endian::native == std::endian::little) != foreign_;
    return static_cast<std::uint8_t>(little ? registers() >> 4U : registers() & 0xfU);
  }

  void setCode(std::uint8_t code) { at_[0] = std::byte{code}; }

  void setOffset(std::uint16_t offset) { store(2, order(offset)); }

  void setImmediate(std::uint32_t immediate) { store(4, order(immediate)); }

  void poison() {
    setCode(BPF_JMP | BPF_CALL);
    at_[1] = std::byte{0};
    setOffset(0);
    setImmediate(static_cast<std::uint32_t>(kPoison));
  }

 private:
  template <typename T>
  [[nodiscard]] T load(std::size_t at) const {
    T value{};
    std::memcpy(&value, at_ + at, sizeof(T));
    return value;
  }

  template <typename T>
  void store(std::size_t at, T value) {
    std::memcpy(at_ + at, &value, sizeof(T));
  }

  [[nodiscard]] std::uint16_t order(std::uint16_t value) const { return foreign_ ? __builtin_bswap16(value) : value; }

  [[nodiscard]] std::uint32_t order(std::uint32_t value) const { return foreign_ ? __builtin_bswap32(value) : value; }

  std::byte* at_;
  bool foreign_;
};

bool isWideLoad(const Slot& slot) {
  return slot.code() == (BPF_LD | BPF_IMM | BPF_DW);
}

/// `value` of 32 bits, sign-extended.
std::uint64_t extended(std::uint64_t value) {
  return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(value)});
}

/// What to write over `found`, if `found` is what the compiler must have written.
Expected<std::uint64_t> newValue(std::uint64_t found, const Resolution& resolution) {
  const Value& local = resolution.local;
  const Value& target = resolution.target;
  if (!local.certain || found == local.value) {
    // An enum of the kernel whose sign its BTF does not tell is as signed as the object's.
    return target.extensionUnknown && !local.extensionUnknown ? extended(target.value) : target.value;
  }
  // Compilers before LLVM 16 had no flag for signed enums, but sign-extended their values nevertheless.
  if (local.extensionUnknown && found == extended(local.value)) {
    return target.extensionUnknown ? extended(target.value) : target.value;
  }
  return std::unexpected(Fault::instructionValue);
}

std::optional<std::uint8_t> accessSize(std::uint64_t bytes) {
  switch (bytes) {
  case 8:
    return BPF_DW;
  case 4:
    return BPF_W;
  case 2:
    return BPF_H;
  case 1:
    return BPF_B;
  default:
    return std::nullopt;
  }
}

Expected<void> patchArithmetic(Slot slot, const Resolution& resolution) {
  if (BPF_SRC(slot.code()) != BPF_K) {
    return std::unexpected(Fault::instructionKind);
  }
  const auto value = newValue(static_cast<std::uint64_t>(std::int64_t{slot.immediate()}), resolution);
  if (!value) {
    return std::unexpected(value.error());
  }
  if (*value > std::numeric_limits<std::uint32_t>::max() && extended(*value) != *value) {
    return std::unexpected(Fault::immediateTooLarge);
  }
  slot.setImmediate(static_cast<std::uint32_t>(*value));
  return {};
}

/// Returns Fault::loadSizeChanged for what has to be poisoned.
Expected<void> patchAccess(Slot slot, const Resolution& resolution) {
  const auto value = newValue(static_cast<std::uint64_t>(std::int64_t{slot.offset()}), resolution);
  if (!value) {
    return std::unexpected(value.error());
  }
  if (*value > std::numeric_limits<std::int16_t>::max()) {
    return std::unexpected(Fault::offsetTooLarge);
  }
  if (resolution.loadSizeAmbiguous) {
    return std::unexpected(Fault::ambiguousLoadSize);
  }
  if (resolution.loadSizeChanged) {
    return std::unexpected(Fault::loadSizeChanged);
  }
  if (resolution.local.loadSize != resolution.target.loadSize) {
    if (accessBytes(slot.code()) != resolution.local.loadSize) {
      return std::unexpected(Fault::instructionLoadSize);
    }
    const auto size = accessSize(resolution.target.loadSize);
    if (!size) {
      return std::unexpected(Fault::newLoadSize);
    }
    slot.setCode(static_cast<std::uint8_t>(BPF_MODE(slot.code()) | *size | BPF_CLASS(slot.code())));
  }
  slot.setOffset(static_cast<std::uint16_t>(*value));
  return {};
}

Expected<void> patchWideLoad(Slot slot, Slot second, const Resolution& resolution) {
  if (slot.source() != 0 || slot.offset() != 0 || second.code() != 0 || second.registers() != 0 ||
      second.offset() != 0) {
    return std::unexpected(Fault::wideLoadForm);
  }
  const std::uint64_t found = static_cast<std::uint32_t>(slot.immediate()) |
                              std::uint64_t{static_cast<std::uint32_t>(second.immediate())} << 32U;
  const auto value = newValue(found, resolution);
  if (!value) {
    return std::unexpected(value.error());
  }
  slot.setImmediate(static_cast<std::uint32_t>(*value));
  second.setImmediate(static_cast<std::uint32_t>(*value >> 32U));
  return {};
}

} // namespace

std::uint64_t accessBytes(std::uint8_t code) {
  switch (BPF_SIZE(code)) {
  case BPF_DW:
    return 8;
  case BPF_W:
    return 4;
  case BPF_H:
    return 2;
  default:
    return 1;
  }
}

Expected<Fault> patchInstruction(std::span<std::byte> code, std::size_t offset, const Resolution& resolution,
                                 bool foreign) {
  if (offset % kInstruction != 0) {
    return std::unexpected(Fault::instructionMisaligned);
  }
  if (offset > code.size() || code.size() - offset < kInstruction) {
    return std::unexpected(Fault::instructionOutside);
  }
  const bool hasSecond = code.size() - offset >= 2 * kInstruction;
  Slot slot(code.data() + offset, foreign);
  Slot second(code.data() + offset + (hasSecond ? kInstruction : 0), foreign);
  if (isWideLoad(slot) && !hasSecond) {
    return std::unexpected(Fault::instructionOutside);
  }
  if (resolution.poison) {
    // Half a wide load would only confuse the verifier's message.
    if (isWideLoad(slot)) {
      second.poison();
    }
    slot.poison();
    return Fault::noMatch;
  }
  Expected<void> patched = std::unexpected(Fault::instructionKind);
  switch (BPF_CLASS(slot.code())) {
  case BPF_ALU:
  case BPF_ALU64:
    patched = patchArithmetic(slot, resolution);
    break;
  case BPF_LDX:
  case BPF_ST:
  case BPF_STX:
    patched = patchAccess(slot, resolution);
    break;
  case BPF_LD:
    patched = isWideLoad(slot) ? patchWideLoad(slot, second, resolution) : std::unexpected(Fault::wideLoadForm);
    break;
  default:
    break;
  }
  if (patched) {
    return Fault::none;
  }
  if (patched.error() == Fault::loadSizeChanged) {
    slot.poison();
    return Fault::loadSizeChanged;
  }
  return std::unexpected(patched.error());
}

void poisonInstruction(std::span<std::byte> code, std::size_t offset, bool foreign) {
  Resolution resolution;
  resolution.poison = true;
  static_cast<void>(patchInstruction(code, offset / kInstruction * kInstruction, resolution, foreign));
}

} // namespace btfd::core
