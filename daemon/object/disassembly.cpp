#include "disassembly.h"

#include <array>
#include <charconv>
#include <string_view>

namespace btfd::object {

namespace {

// Parts of an instruction's code (Documentation/bpf/standardization/instruction-set.rst).
constexpr unsigned kClass = 0x07;
constexpr unsigned kSource = 0x08;
constexpr unsigned kOperation = 0xf0;
constexpr unsigned kSize = 0x18;
constexpr unsigned kMode = 0xe0;

constexpr unsigned kSignedLoad = 0x80; ///< BPF_MEMSX
constexpr unsigned kAtomic = 0xc0;     ///< BPF_ATOMIC
constexpr unsigned kByteSwap = 0xd0;   ///< BPF_END
constexpr unsigned kMayGoto = 0xe0;    ///< BPF_JCOND

constexpr int kLoadAcquire = 0x100;
constexpr int kStoreRelease = 0x110;

template <typename Number>
std::string inBase(Number number, int base) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
  return {digits.data(), end};
}

std::string hexadecimal(std::uint64_t number) {
  return "0x" + inBase(number, 16);
}

/// With its sign, also a plus.
std::string offset(std::int64_t number) {
  return (number < 0 ? "" : "+") + std::to_string(number);
}

std::string sizeName(unsigned code) {
  constexpr std::array kNames{"u32", "u16", "u8", "u64"};
  return kNames.at((code & kSize) >> 3U);
}

std::string signedSizeName(unsigned code) {
  return "s" + sizeName(code).substr(1);
}

/// One instruction.
class Disassembler {
 public:
  Disassembler(std::span<const struct bpf_insn> code, std::size_t at, const InstructionNames& names)
      : code_(code), at_(at), names_(names), insn_(code[at]), kind_(insn_.code) {}

  std::string text() const {
    std::string text;
    switch (kind_ & kClass) {
    case BPF_ALU:
    case BPF_ALU64:
      text = arithmetic();
      break;
    case BPF_JMP:
    case BPF_JMP32:
      text = jump();
      break;
    case BPF_LD:
      text = wideLoad();
      break;
    case BPF_LDX:
      text = load();
      break;
    case BPF_STX:
      text = (kind_ & kMode) == kAtomic ? atomic() : store(reg(insn_.src_reg));
      break;
    default:
      text = store(std::to_string(insn_.imm));
      break;
    }
    return text.empty() ? "unknown instruction " + hexadecimal(kind_) : text;
  }

 private:
  [[nodiscard]] bool isWide() const { return (kind_ & kClass) == BPF_ALU64 || (kind_ & kClass) == BPF_JMP; }

  static std::string reg(unsigned number) { return "r" + std::to_string(number); }

  /// A register as the instruction takes it: 64 bits or the lower 32.
  [[nodiscard]] std::string operand(unsigned number) const { return (isWide() ? "r" : "w") + std::to_string(number); }

  [[nodiscard]] std::string place(unsigned base) const { return "(" + reg(base) + " " + offset(insn_.off) + ")"; }

  static std::string pointer(const std::string& size) { return "*(" + size + " *)"; }

  [[nodiscard]] std::string arithmetic() const {
    constexpr std::array<std::string_view, 14> kOperators{
        "+=", "-=", "*=", "/=", "|=", "&=", "<<=", ">>=", "", "%=", "^=", "=", "s>>=", ""};
    const unsigned operation = kind_ & kOperation;
    const std::string target = operand(insn_.dst_reg);
    if (operation == BPF_NEG) {
      return target + " = -" + target;
    }
    if (operation == kByteSwap) {
      return byteSwap();
    }
    const std::size_t number = operation >> 4U;
    if (number >= kOperators.size() || kOperators.at(number).empty()) {
      return {};
    }
    std::string_view name = kOperators.at(number);
    const bool isSigned = insn_.off == 1 && (operation == BPF_DIV || operation == BPF_MOD);
    const std::string sign = isSigned ? "s" : "";
    if ((kind_ & kSource) == BPF_K) {
      return target + " " + sign + std::string(name) + " " + std::to_string(insn_.imm);
    }
    const std::string source = operand(insn_.src_reg);
    if (operation == BPF_MOV && insn_.off != 0) {
      const bool castsAddress = insn_.off == 1 && isWide(); // BPF_ADDR_SPACE_CAST
      if (castsAddress) {
        const auto spaces = static_cast<std::uint32_t>(insn_.imm);
        return target + " = addr_space_cast(" + source + ", " + std::to_string(spaces >> 16U) + ", " +
               std::to_string(spaces & 0xffffU) + ")";
      }
      return target + " = (s" + std::to_string(insn_.off) + ")" + source;
    }
    return target + " " + sign + std::string(name) + " " + source;
  }

  [[nodiscard]] std::string byteSwap() const {
    const std::string target = reg(insn_.dst_reg);
    const std::string bits = std::to_string(insn_.imm);
    if ((kind_ & kClass) == BPF_ALU64) {
      return target + " = bswap" + bits + " " + target;
    }
    return target + " = " + ((kind_ & kSource) == BPF_TO_BE ? "be" : "le") + bits + " " + target;
  }

  [[nodiscard]] std::string jump() const {
    const unsigned operation = kind_ & kOperation;
    switch (operation) {
    case BPF_JA:
      return (kind_ & kClass) == BPF_JMP ? "goto pc" + offset(insn_.off) : "gotol pc" + offset(insn_.imm);
    case BPF_CALL:
      return call();
    case BPF_EXIT:
      return "exit";
    case kMayGoto:
      return "may_goto pc" + offset(insn_.off);
    default:
      break;
    }
    constexpr std::array<std::string_view, 14> kComparisons{"",    "==", ">", ">=", "&",  "!=", "s>",
                                                            "s>=", "",   "",  "<",  "<=", "s<", "s<="};
    const std::size_t number = operation >> 4U;
    if (number >= kComparisons.size() || kComparisons.at(number).empty()) {
      return {};
    }
    const std::string other =
        (kind_ & kSource) == BPF_X ? operand(insn_.src_reg) : hexadecimal(static_cast<std::uint32_t>(insn_.imm));
    return "if " + operand(insn_.dst_reg) + " " + std::string(kComparisons.at(number)) + " " + other + " goto pc" +
           offset(insn_.off);
  }

  [[nodiscard]] std::string call() const {
    if ((kind_ & kSource) == BPF_X) {
      return "callx " + reg(insn_.dst_reg);
    }
    if (insn_.src_reg == BPF_PSEUDO_CALL) {
      const auto target = static_cast<std::int64_t>(at_) + 1 + insn_.imm;
      return "call pc" + offset(insn_.imm) + named(names_.function, static_cast<std::size_t>(target));
    }
    if (insn_.src_reg == BPF_PSEUDO_KFUNC_CALL) {
      return "call kernel-function" + named(names_.reference, at_);
    }
    const std::string name = names_.helper ? names_.helper(insn_.imm) : "";
    return "call " + (name.empty() ? "" : name + "#") + std::to_string(insn_.imm);
  }

  template <typename Number>
  static std::string named(const std::function<std::string(Number)>& names, Number number) {
    const std::string name = names ? names(number) : "";
    return name.empty() ? "" : " <" + name + ">";
  }

  [[nodiscard]] std::string wideLoad() const {
    switch (kind_ & kMode) {
    case BPF_IMM: {
      if ((kind_ & kSize) != BPF_DW || at_ + 1 >= code_.size()) {
        return {};
      }
      const auto high = static_cast<std::uint32_t>(code_[at_ + 1].imm);
      const std::uint64_t value = std::uint64_t{high} << 32U | static_cast<std::uint32_t>(insn_.imm);
      return reg(insn_.dst_reg) + " = " + hexadecimal(value) + named(names_.reference, at_);
    }
    case BPF_ABS:
      return "r0 = " + pointer(sizeName(kind_)) + "skb[" + std::to_string(insn_.imm) + "]";
    case BPF_IND:
      return "r0 = " + pointer(sizeName(kind_)) + "skb[" + reg(insn_.src_reg) + " + " + std::to_string(insn_.imm) + "]";
    default:
      return {};
    }
  }

  [[nodiscard]] std::string load() const {
    const unsigned mode = kind_ & kMode;
    if (mode != BPF_MEM && mode != kSignedLoad) {
      return {};
    }
    return reg(insn_.dst_reg) + " = " + pointer(mode == BPF_MEM ? sizeName(kind_) : signedSizeName(kind_)) +
           place(insn_.src_reg);
  }

  [[nodiscard]] std::string store(const std::string& value) const {
    return (kind_ & kMode) == BPF_MEM ? pointer(sizeName(kind_)) + place(insn_.dst_reg) + " = " + value : "";
  }

  [[nodiscard]] std::string atomic() const {
    const bool isNarrow = (kind_ & kSize) == BPF_W;
    const std::string prefix = isNarrow ? "atomic_" : "atomic64_";
    const std::string source = (isNarrow ? "w" : "r") + std::to_string(insn_.src_reg);
    const std::string target = pointer(sizeName(kind_)) + place(insn_.dst_reg);
    const std::string address = "(" + pointer(sizeName(kind_)).substr(1) + place(insn_.dst_reg) + ", " + source + ")";
    switch (insn_.imm) {
    case BPF_ADD:
      return "lock " + target + " += " + source;
    case BPF_AND:
      return "lock " + target + " &= " + source;
    case BPF_OR:
      return "lock " + target + " |= " + source;
    case BPF_XOR:
      return "lock " + target + " ^= " + source;
    case BPF_ADD | BPF_FETCH:
      return source + " = " + prefix + "fetch_add" + address;
    case BPF_AND | BPF_FETCH:
      return source + " = " + prefix + "fetch_and" + address;
    case BPF_OR | BPF_FETCH:
      return source + " = " + prefix + "fetch_or" + address;
    case BPF_XOR | BPF_FETCH:
      return source + " = " + prefix + "fetch_xor" + address;
    case BPF_XCHG:
      return source + " = " + (isNarrow ? "xchg32_" : "xchg_") + "64" + address;
    case BPF_CMPXCHG: {
      const std::string before = isNarrow ? "w0" : "r0";
      return before + " = " + (isNarrow ? "cmpxchg32_32" : "cmpxchg_64") + "(" + reg(insn_.dst_reg) + " " +
             offset(insn_.off) + ", " + before + ", " + source + ")";
    }
    case kLoadAcquire:
      return reg(insn_.dst_reg) + " = load_acquire(" + pointer(sizeName(kind_)).substr(1) + place(insn_.src_reg) + ")";
    case kStoreRelease:
      return "store_release(" + pointer(sizeName(kind_)).substr(1) + place(insn_.dst_reg) + ", " + source + ")";
    default:
      return {};
    }
  }

  std::span<const struct bpf_insn> code_;
  std::size_t at_;
  const InstructionNames& names_;
  const struct bpf_insn& insn_;
  unsigned kind_;
};

} // namespace

std::string disassemble(std::span<const struct bpf_insn> code, std::size_t at, const InstructionNames& names) {
  return Disassembler(code, at, names).text();
}

std::size_t slotsOf(const struct bpf_insn& instruction) {
  return instruction.code == (BPF_LD | BPF_IMM | BPF_DW) ? 2 : 1;
}

} // namespace btfd::object
