#include "reachability.h"

#include "core/patch.h"

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <elf.h>

namespace btfd::check {

namespace {

/// More than the kernel's verifier itself looks at (BPF_COMPLEXITY_LIMIT_INSNS).
constexpr std::size_t kMostSteps = 1'000'000;

/// The frame of a function (MAX_BPF_STACK); the verifier refuses what is beyond.
constexpr std::int64_t kFrameBytes = 512;

constexpr std::size_t kRegisters = 11;
constexpr std::size_t kFramePointer = 10;

/// What is known of a register.
struct Value {
  enum class Kind : std::uint8_t {
    /// The verifier knows no more than we do: it follows both branches.
    any,
    constant,
    /// The verifier knows it, we do not: it depends on the kernel.
    kernels,
    /// An address in the function's stack frame, relative to its end.
    frame,
    /// An address in read-only data, of section `section`.
    data,
  };

  Kind kind = Kind::any;
  std::size_t section = 0;
  std::uint64_t number = 0;

  bool operator==(const Value&) const = default;

  [[nodiscard]] bool isConstant() const { return kind == Kind::constant; }

  [[nodiscard]] bool isKernels() const { return kind == Kind::kernels; }

  [[nodiscard]] bool isAddress() const { return kind == Kind::frame || kind == Kind::data; }

  static Value constant(std::uint64_t number) { return {.kind = Kind::constant, .section = 0, .number = number}; }

  static Value kernels() { return {.kind = Kind::kernels, .section = 0, .number = 0}; }

  static Value frame(std::uint64_t offset) { return {.kind = Kind::frame, .section = 0, .number = offset}; }
};

Value joined(const Value& left, const Value& right) {
  if (left == right) {
    return left;
  }
  const auto fits = [](const Value& value) { return value.isConstant() || value.isKernels(); };
  return (left.isKernels() || right.isKernels()) && fits(left) && fits(right) ? Value::kernels() : Value{};
}

/// What is known where an instruction begins.
struct State {
  std::array<Value, kRegisters> registers{};
  /// Spilled registers, by their offset to the frame's end.
  std::map<std::int64_t, Value> slots;
  /// Whether the verifier gets here for certain.
  bool certain = true;

  static State entry() {
    State state;
    state.registers[kFramePointer] = Value::frame(0);
    return state;
  }

  /// Takes in what is known on another way to the same place. Whether anything changed.
  bool join(const State& other) {
    bool changed = !certain && other.certain;
    certain = certain || other.certain;
    for (std::size_t i = 0; i < kRegisters; ++i) {
      const Value value = joined(registers.at(i), other.registers.at(i));
      changed = changed || value != registers.at(i);
      registers.at(i) = value;
    }
    for (auto at = slots.begin(); at != slots.end();) {
      const auto found = other.slots.find(at->first);
      const Value value = found == other.slots.end() ? Value{} : joined(at->second, found->second);
      changed = changed || value != at->second;
      at->second = value;
      at = value == Value{} ? slots.erase(at) : std::next(at);
    }
    return changed;
  }

  void forget(std::int64_t from, std::int64_t to) {
    constexpr std::int64_t kSlot = 8;
    slots.erase(slots.upper_bound(from - kSlot), slots.lower_bound(to));
  }
};

template <typename Number>
std::optional<bool> compare(std::uint8_t operation, Number left, Number right) {
  using Signed = std::make_signed_t<Number>;
  const auto signedLeft = static_cast<Signed>(left);
  const auto signedRight = static_cast<Signed>(right);
  switch (operation) {
  case BPF_JEQ:
    return left == right;
  case BPF_JNE:
    return left != right;
  case BPF_JGT:
    return left > right;
  case BPF_JGE:
    return left >= right;
  case BPF_JLT:
    return left < right;
  case BPF_JLE:
    return left <= right;
  case BPF_JSET:
    return (left & right) != 0;
  case BPF_JSGT:
    return signedLeft > signedRight;
  case BPF_JSGE:
    return signedLeft >= signedRight;
  case BPF_JSLT:
    return signedLeft < signedRight;
  case BPF_JSLE:
    return signedLeft <= signedRight;
  default:
    return std::nullopt;
  }
}

template <typename Number>
std::optional<std::uint64_t> compute(std::uint8_t operation, Number left, Number right) {
  constexpr Number kBits = sizeof(Number) * 8;
  const Number shift = right % kBits;
  switch (operation) {
  case BPF_ADD:
    return static_cast<Number>(left + right);
  case BPF_SUB:
    return static_cast<Number>(left - right);
  case BPF_MUL:
    return static_cast<Number>(left * right);
  case BPF_OR:
    return left | right;
  case BPF_AND:
    return left & right;
  case BPF_XOR:
    return left ^ right;
  case BPF_LSH:
    return static_cast<Number>(left << shift);
  case BPF_RSH:
    return static_cast<Number>(left >> shift);
  case BPF_ARSH:
    return static_cast<Number>(static_cast<std::make_signed_t<Number>>(left) >> shift);
  case BPF_NEG:
    return static_cast<Number>(Number{0} - left);
  default:
    return std::nullopt;
  }
}

std::uint64_t signExtended(std::int32_t immediate) {
  return static_cast<std::uint64_t>(std::int64_t{immediate});
}

/// Follows the code until nothing new is learnt.
class Walk {
 public:
  Walk(const Code& code, std::span<const std::byte> image, const std::function<Supplied(std::string_view)>& supplied,
       std::vector<std::vector<Reach>>& reached)
      : code_(code), image_(image), supplied_(supplied), reached_(reached) {
    for (const Code::Section& section : code_.sections()) {
      joins_.emplace_back(section.instructions, false);
    }
    for (const Code::Section& section : code_.sections()) {
      findJoins(section);
    }
  }

  /// Whether the walk came to its end: else nothing is known.
  bool run(std::span<const Place> entries) {
    for (const Place& entry : entries) {
      arrive(entry, State::entry());
    }
    while (!waiting_.empty()) {
      const Place next = waiting_.front();
      waiting_.pop_front();
      queued_.erase(next);
      if (!follow(next, states_.at(next))) {
        return false;
      }
    }
    return true;
  }

 private:
  [[nodiscard]] bool isInside(const Place& place) const {
    const Code::Section* section = code_.find(place.section);
    return section != nullptr && place.instruction < section->instructions;
  }

  [[nodiscard]] bpf_insn fetch(const Place& place) const { return code_.instructionAt(place, image_); }

  static bool isJump(const bpf_insn& instruction) {
    const auto kind = BPF_CLASS(instruction.code);
    const auto operation = BPF_OP(instruction.code);
    return (kind == BPF_JMP || kind == BPF_JMP32) && operation != BPF_CALL && operation != BPF_EXIT;
  }

  static std::size_t jumpTarget(const bpf_insn& jump, std::size_t from) {
    const bool isLong = jump.code == (BPF_JMP32 | BPF_JA);
    return from + 1 + static_cast<std::size_t>(std::int64_t{isLong ? jump.imm : std::int32_t{jump.off}});
  }

  /// Where ways meet: what is known is kept there only.
  void findJoins(const Code::Section& section) {
    for (std::size_t i = 0; i < section.instructions; ++i) {
      const bpf_insn instruction = fetch({section.number, i});
      if (isJump(instruction)) {
        addJoin({section.number, jumpTarget(instruction, i)});
      }
      i += instruction.code == (BPF_LD | BPF_IMM | BPF_DW) ? 1 : 0;
    }
  }

  /// Of the section that `place` is inside of, in the code's order.
  [[nodiscard]] std::size_t sectionIndex(const Place& place) const {
    return static_cast<std::size_t>(code_.find(place.section) - code_.sections().data());
  }

  void addJoin(const Place& place) {
    if (isInside(place)) {
      joins_[sectionIndex(place)][place.instruction] = true;
    }
  }

  [[nodiscard]] bool isJoin(const Place& place) const { return joins_[sectionIndex(place)][place.instruction]; }

  void mark(const Place& place, bool certain) {
    Reach& reach = reached_[sectionIndex(place)][place.instruction];
    reach = certain ? Reach::always : std::max(reach, Reach::depends);
  }

  void arrive(const Place& place, const State& state) {
    if (!isInside(place)) {
      return;
    }
    const auto [at, isNew] = states_.try_emplace(place, state);
    steps_ += isNew ? state.slots.size() : 0; // so that there is a limit to the memory, too
    if ((isNew || at->second.join(state)) && queued_.insert(place).second) {
      waiting_.push_back(place);
    }
  }

  /// Goes on from `place` until the way ends, forks or meets another. False if this takes too long.
  bool follow(Place place, State state) {
    for (bool first = true; isInside(place); first = false) {
      if (!first && isJoin(place)) {
        arrive(place, state);
        return true;
      }
      if (++steps_ > kMostSteps) {
        return false;
      }
      mark(place, state.certain);
      const bpf_insn instruction = fetch(place);
      if (!step(instruction, place, state)) {
        return true;
      }
      place.instruction += instruction.code == (BPF_LD | BPF_IMM | BPF_DW) ? 2 : 1;
    }
    return true;
  }

  /// Does one instruction; false if the way does not simply go on behind it.
  bool step(const bpf_insn& instruction, const Place& place, State& state) {
    switch (BPF_CLASS(instruction.code)) {
    case BPF_ALU:
    case BPF_ALU64:
      calculate(instruction, state);
      return true;
    case BPF_LD:
      loadConstant(instruction, place, state);
      return true;
    case BPF_LDX:
      set(state, instruction.dst_reg, loaded(instruction, state));
      return true;
    case BPF_ST:
    case BPF_STX:
      store(instruction, state);
      return true;
    default:
      return transfer(instruction, place, state);
    }
  }

  static void set(State& state, std::size_t index, const Value& value) {
    if (index < kRegisters) {
      state.registers.at(index) = value;
    }
  }

  static Value get(const State& state, std::size_t index) {
    return index < kRegisters ? state.registers.at(index) : Value{};
  }

  static void calculate(const bpf_insn& instruction, State& state) {
    const bool isWide = BPF_CLASS(instruction.code) == BPF_ALU64;
    const std::uint8_t operation = BPF_OP(instruction.code);
    const bool fromRegister = BPF_SRC(instruction.code) == BPF_X;
    const Value left = get(state, instruction.dst_reg);
    const Value right = fromRegister ? get(state, instruction.src_reg) : Value::constant(signExtended(instruction.imm));
    Value result;
    if (operation == BPF_MOV && instruction.off == 0) {
      result = moved(right, isWide);
    } else if (isWide && left.isAddress() && right.isConstant() && (operation == BPF_ADD || operation == BPF_SUB)) {
      result = left;
      result.number += operation == BPF_ADD ? right.number : 0 - right.number;
    } else if (left.isConstant() && right.isConstant() && instruction.off == 0) {
      const auto number = isWide ? compute<std::uint64_t>(operation, left.number, right.number)
                                 : compute<std::uint32_t>(operation, static_cast<std::uint32_t>(left.number),
                                                          static_cast<std::uint32_t>(right.number));
      result = number ? Value::constant(*number) : Value{};
    } else if (joined(left, right).isKernels()) {
      result = Value::kernels();
    }
    set(state, instruction.dst_reg, result);
  }

  static Value moved(const Value& value, bool isWide) {
    if (isWide || value.isKernels()) {
      return value;
    }
    return value.isConstant() ? Value::constant(static_cast<std::uint32_t>(value.number)) : Value{};
  }

  void loadConstant(const bpf_insn& instruction, const Place& place, State& state) {
    if (instruction.code != (BPF_LD | BPF_IMM | BPF_DW)) { // BPF_LD_ABS and _IND: as a call
      clobber(state);
      return;
    }
    const Place second{place.section, place.instruction + 1};
    const std::uint64_t high = isInside(second) ? static_cast<std::uint32_t>(fetch(second).imm) : 0;
    Value value = Value::constant(high << 32U | static_cast<std::uint32_t>(instruction.imm));
    if (const auto referred = code_.referredBy(place, instruction)) {
      value = addressOf(*referred);
    } else if (instruction.src_reg != 0) {
      value = {};
    }
    set(state, instruction.dst_reg, value);
  }

  Value addressOf(const Referred& referred) {
    if (referred.code) { // a callback, which the kernel calls with what it likes
      arrive(*referred.code, State::entry());
      return {};
    }
    if (referred.symbol->section != SHN_UNDEF) {
      return code_.constants(referred.symbol->section).empty()
                 ? Value{}
                 : Value{.kind = Value::Kind::data, .section = referred.symbol->section, .number = referred.dataOffset};
    }
    switch (supplied_(referred.symbol->name)) {
    case Supplied::no:
      return Value::constant(0);
    case Supplied::yes:
      return Value::constant(1); // whatever it is, it is not zero
    case Supplied::unknown:
      break;
    }
    return Value::kernels();
  }

  [[nodiscard]] Value loaded(const bpf_insn& instruction, const State& state) const {
    const Value base = get(state, instruction.src_reg);
    const std::size_t size = core::accessBytes(instruction.code);
    const std::uint64_t at = base.number + static_cast<std::uint64_t>(std::int64_t{instruction.off});
    if (base.kind == Value::Kind::frame) {
      const auto slot = state.slots.find(static_cast<std::int64_t>(at));
      return slot == state.slots.end() || size != sizeof(std::uint64_t) ? Value{} : slot->second;
    }
    if (base.kind == Value::Kind::data) {
      const auto constants = code_.constants(base.section);
      if (at > constants.size() || size > constants.size() - at || BPF_MODE(instruction.code) != BPF_MEM) {
        return Value::kernels();
      }
      std::uint64_t number = 0;
      for (std::size_t i = 0; i < size; ++i) {
        number |= std::to_integer<std::uint64_t>(constants[at + byteOf(i, size)]) << (8 * i);
      }
      return Value::constant(number);
    }
    return base.isKernels() ? Value::kernels() : Value{};
  }

  /// Which byte of a number in the object's data is its byte `index` from the lowest on.
  [[nodiscard]] std::size_t byteOf(std::size_t index, std::size_t size) const {
    const bool isLittle = (std::endian::native == std::endian::little) != code_.isForeign();
    return isLittle ? index : size - 1 - index;
  }

  static void store(const bpf_insn& instruction, State& state) {
    const Value base = get(state, instruction.dst_reg);
    const std::size_t size = core::accessBytes(instruction.code);
    const bool isStore = BPF_MODE(instruction.code) == BPF_MEM;
    if (base.kind == Value::Kind::frame) {
      const auto at = static_cast<std::int64_t>(base.number) + instruction.off;
      state.forget(at, at + static_cast<std::int64_t>(size));
      const Value value = BPF_CLASS(instruction.code) == BPF_STX ? get(state, instruction.src_reg)
                                                                 : Value::constant(signExtended(instruction.imm));
      const bool isInFrame = at >= -kFrameBytes && at < 0 && at % std::int64_t{sizeof(std::uint64_t)} == 0;
      if (isStore && isInFrame && size == sizeof(std::uint64_t) && value != Value{}) {
        state.slots.insert_or_assign(at, value);
      }
    }
    if (!isStore) { // an atomic operation may fetch into the source register or, BPF_CMPXCHG, into r0
      set(state, instruction.src_reg, {});
      set(state, 0, {});
    }
  }

  /// What a call leaves behind: r0 to r5 are the callee's, and what it was given an address of may be changed.
  static void clobber(State& state) {
    constexpr std::size_t kLastArgument = 5;
    for (std::size_t i = 0; i <= kLastArgument; ++i) {
      const Value& value = state.registers.at(i);
      if (i > 0 && value.kind == Value::Kind::frame) {
        state.forget(static_cast<std::int64_t>(value.number), 0);
      }
      state.registers.at(i) = {};
    }
  }

  bool transfer(const bpf_insn& instruction, const Place& place, State& state) {
    if (isJump(instruction)) {
      jump(instruction, place, state);
      return false;
    }
    if (BPF_OP(instruction.code) == BPF_EXIT) {
      leave(place, state);
      return false;
    }
    const auto referred = code_.referredBy(place, instruction);
    if (instruction.src_reg != BPF_PSEUDO_CALL || !referred || !referred->code) {
      clobber(state);
      return true;
    }
    return call(*referred->code, place, state);
  }

  /// A call of the object's own function. Its result is awaited unless the verifier takes it by its prototype.
  bool call(const Place& target, const Place& place, State& state) {
    const CodeFunction* function = code_.functionAt(target);
    State inside = State::entry();
    inside.certain = state.certain;
    const bool isGlobal = function == nullptr || function->isGlobal;
    constexpr std::size_t kLastArgument = 5;
    for (std::size_t i = 1; i <= kLastArgument && !isGlobal; ++i) {
      const Value& value = state.registers.at(i);
      inside.registers.at(i) = value.kind == Value::Kind::frame ? Value{} : value;
    }
    clobber(state);
    if (isGlobal) {
      arrive(target, inside);
      return true;
    }
    const Place behind{place.section, place.instruction + 1};
    addJoin(behind);
    auto& callers = callers_[function->begin];
    const auto [at, isNew] = callers.try_emplace(behind, state);
    if (!isNew) {
      at->second.join(state);
    }
    if (const auto result = results_.find(function->begin); result != results_.end()) {
      comeBack(behind, at->second, result->second);
    }
    arrive(target, inside);
    return false;
  }

  void comeBack(const Place& behind, State state, const std::pair<Value, bool>& result) {
    state.registers[0] = result.first;
    state.certain = state.certain && result.second;
    arrive(behind, state);
  }

  void leave(const Place& place, const State& state) {
    const CodeFunction* function = code_.functionAt(place);
    if (function == nullptr) {
      return;
    }
    Value value = state.registers[0];
    if (value.kind == Value::Kind::frame) {
      value = {};
    }
    const auto [at, isNew] = results_.try_emplace(function->begin, value, state.certain);
    const std::pair<Value, bool> all{joined(at->second.first, value), at->second.second || state.certain};
    if (isNew || all != at->second) {
      at->second = all;
      for (const auto& [behind, before] : callers_[function->begin]) {
        comeBack(behind, before, all);
      }
    }
  }

  void jump(const bpf_insn& instruction, const Place& place, State& state) {
    const Place target{place.section, jumpTarget(instruction, place.instruction)};
    const Place next{place.section, place.instruction + 1};
    const std::uint8_t operation = BPF_OP(instruction.code);
    if (operation == BPF_JA) {
      arrive(target, state);
      return;
    }
    const Value left = get(state, instruction.dst_reg);
    const Value right = BPF_SRC(instruction.code) == BPF_X ? get(state, instruction.src_reg)
                                                           : Value::constant(signExtended(instruction.imm));
    const bool isWide = BPF_CLASS(instruction.code) == BPF_JMP;
    if (const auto taken = decide(operation, left, right, isWide)) {
      arrive(*taken ? target : next, state);
      return;
    }
    if (joined(left, right).isKernels()) {
      state.certain = false;
    }
    arriveKnowing(target, state, instruction, isWide && operation == BPF_JEQ, right);
    arriveKnowing(next, state, instruction, isWide && operation == BPF_JNE, right);
  }

  /// `isEqual`: on this way the instruction's register has value `right`.
  void arriveKnowing(const Place& place, State state, const bpf_insn& instruction, bool isEqual, const Value& right) {
    if (isEqual && right.isConstant() && get(state, instruction.dst_reg) == Value{}) {
      set(state, instruction.dst_reg, right);
    }
    arrive(place, state);
  }

  static std::optional<bool> decide(std::uint8_t operation, const Value& left, const Value& right, bool isWide) {
    if (left.isConstant() && right.isConstant()) {
      return isWide ? compare<std::uint64_t>(operation, left.number, right.number)
                    : compare<std::uint32_t>(operation, static_cast<std::uint32_t>(left.number),
                                             static_cast<std::uint32_t>(right.number));
    }
    const bool isAddressAgainstNull = left.isAddress() && right == Value::constant(0);
    if (isAddressAgainstNull && (operation == BPF_JEQ || operation == BPF_JNE)) {
      return operation == BPF_JNE;
    }
    return std::nullopt;
  }

  const Code& code_;
  std::span<const std::byte> image_;
  const std::function<Supplied(std::string_view)>& supplied_;
  std::vector<std::vector<Reach>>& reached_;
  /// For each of the code's sections, one for each instruction.
  std::vector<std::vector<bool>> joins_;
  std::map<Place, State> states_;
  std::deque<Place> waiting_;
  std::set<Place> queued_;
  /// By function: what its callers know when they go on, and what it gives them and whether it does for certain.
  std::map<Place, std::map<Place, State>> callers_;
  std::map<Place, std::pair<Value, bool>> results_;
  std::size_t steps_ = 0;
};

} // namespace

Reachability::Reachability(const Code& code, std::span<const std::byte> image, std::span<const Place> entries,
                           const std::function<Supplied(std::string_view)>& supplied)
    : code_(code) {
  for (const Code::Section& section : code.sections()) {
    reached_.emplace_back(section.instructions, Reach::never);
  }
  if (!Walk(code, image, supplied, reached_).run(entries)) {
    for (auto& section : reached_) {
      std::ranges::fill(section, Reach::depends);
    }
  }
}

Reach Reachability::at(const Place& place) const {
  const Code::Section* section = code_.find(place.section);
  if (section == nullptr || place.instruction >= section->instructions) {
    return Reach::never;
  }
  return reached_[static_cast<std::size_t>(section - code_.sections().data())][place.instruction];
}

} // namespace btfd::check
