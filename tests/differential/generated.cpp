// Compares relocation by this project with libbpf's on types, accesses and instructions that are made up.
// usage: btfd_generated [--seed N] [--cases N]     Needs root: libbpf tries bpf(2) before it relocates.
//
// A difference is an error unless one of the rules below says why it is meant; how often each applied is told at the
// end.
#include "base/unique_fd.h"
#include "object/opened_object.h"
#include "object/relocate_image.h"
#include "offline/used_types.h"
#include "shape.h"
#include "test_support/elf_maker.h"
#include "test_support/files.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

using namespace btfd;               // NOLINT
using namespace btfd::differential; // NOLINT
using core::Kind;
using Code = std::vector<bpf_insn>;

bool sameCode(const Code& left, const Code& right) {
  return left.size() == right.size() && std::memcmp(left.data(), right.data(), left.size() * sizeof(bpf_insn)) == 0;
}

/// One record and the code that it is for: a program of its own.
struct Asked {
  Kind kind = Kind::fieldByteOffset;
  std::string access;
  Code code;
};

/// An object that asks about one type, and a kernel with one or more types of the name.
struct Case {
  BtfMaker object;
  TypeId root = 0;
  std::vector<Asked> asked;
  BtfMaker kernel;
  /// Ids in the kernel, and offset of a name that is nobody's.
  std::vector<TypeId> candidates;
  std::uint32_t nobody = 0;
};

// ---- Making a case
// ---------------------------------------------------------------------------------------------------

std::string randomAccess(const Shape& root, Random& random) {
  std::string text = std::to_string(random.oneIn(6) ? random.below(4) : 0);
  for (const Shape* at = &stripped(root); random.below(8) != 0; at = &stripped(*at)) {
    std::uint32_t index = 0;
    if (at->isComposite()) {
      index = random.below(static_cast<std::uint32_t>(at->members.size()));
      at = at->members[index].type;
    } else if (at->kind == Shape::Kind::array) {
      index = random.below(at->size + (random.oneIn(4) ? 2 : 1));
      at = at->to;
    } else {
      if (random.oneIn(30)) {
        text += ":0";
      }
      break;
    }
    text += ":" + std::to_string(random.oneIn(40) ? index + 50 : index);
  }
  return text;
}

Asked randomQuestion(const Shape& root, Random& random) {
  static const std::vector<Kind> kFields = {Kind::fieldByteOffset, Kind::fieldByteOffset, Kind::fieldByteOffset,
                                            Kind::fieldByteSize,   Kind::fieldExists,     Kind::fieldSigned,
                                            Kind::fieldLeftShift,  Kind::fieldRightShift};
  static const std::vector<Kind> kTypes = {Kind::typeIdLocal, Kind::typeIdTarget, Kind::typeExists,
                                           Kind::typeSize,    Kind::typeMatches,  Kind::typeMatches};
  static const std::vector<Kind> kEnumerators = {Kind::enumeratorExists, Kind::enumeratorValue, Kind::enumeratorValue};
  Asked asked;
  const Shape& type = stripped(root);
  const bool other = random.oneIn(25);
  if (random.oneIn(4)) {
    asked.kind = random.of(kTypes);
    asked.access = other ? "1" : "0";
  } else if (type.isEnum() != other) {
    asked.kind = random.of(kEnumerators);
    asked.access = std::to_string(random.below(static_cast<std::uint32_t>(type.values.size()) + (other ? 3 : 0)));
  } else {
    asked.kind = random.of(kFields);
    asked.access = randomAccess(root, random);
  }
  if (random.oneIn(100)) {
    asked.kind = static_cast<Kind>(random.below(16));
  }
  return asked;
}

bpf_insn instruction(int code, std::int16_t offset, std::int32_t immediate) {
  return {.code = static_cast<std::uint8_t>(code), .dst_reg = 1, .src_reg = 0, .off = offset, .imm = immediate};
}

Code wide(std::uint64_t value) {
  return {instruction(BPF_LD | BPF_IMM | BPF_DW, 0, static_cast<std::int32_t>(value)),
          {.code = 0, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = static_cast<std::int32_t>(value >> 32U)}};
}

/// An instruction that asks, compiled with `local`.
Code randomCode(Kind kind, std::uint64_t local, Random& random) {
  if (random.oneIn(25)) {
    local += 1;
  }
  const int size = static_cast<int>(random.below(4)) << 3U;
  const auto offset = static_cast<std::int16_t>(local);
  const auto immediate = static_cast<std::int32_t>(local);
  if (kind == Kind::fieldByteOffset && !random.oneIn(3)) {
    const int classes[] = {BPF_LDX, BPF_LDX, BPF_STX, BPF_ST};
    return {instruction(classes[random.below(4)] | BPF_MEM | size, offset, 0)};
  }
  if (random.oneIn(60)) {
    return {instruction(random.oneIn(2) ? BPF_ALU64 | BPF_ADD | BPF_X : BPF_JMP | BPF_JA, offset, immediate)};
  }
  return random.oneIn(2) ? wide(local) : Code{instruction(BPF_ALU64 | BPF_MOV | BPF_K, 0, immediate)};
}

std::vector<core::Relocation> relocate(const Case& made, const std::vector<Asked>& asked, std::vector<Code>& codes,
                                       const core::Targets& kernel) {
  core::Records records;
  std::vector<std::span<std::byte>> sections;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    records.records.push_back(
        {.section = static_cast<std::uint32_t>(i),
         .instructionOffset = 0,
         .type = made.root,
         .access = static_cast<std::uint32_t>(btf__find_str(made.object.get(), asked[i].access.c_str())),
         .kind = asked[i].kind});
    records.sections.push_back(0);
    sections.push_back(std::as_writable_bytes(std::span(codes[i])));
  }
  return core::relocate(core::Types::ofObject(made.object.btf()), records, sections, kernel);
}

std::vector<core::Relocation> relocate(const Case& made, const std::vector<Asked>& asked, std::vector<Code>& codes) {
  const btfd::btf::NameIndex index(made.kernel.btf(), 1);
  return relocate(made, asked, codes, core::Targets(made.kernel.btf(), index));
}

Case makeCase(std::uint64_t seed) {
  Random random(seed);
  Shapes shapes(random);
  Case made;
  const std::vector<std::string> localNames = {"root", "root", "root___old", "root___2"};
  const Shape* local = shapes.root(random.of(localNames));
  made.root = emit(*local, made.object, random);
  if (random.oneIn(2)) {
    made.kernel.unsignedInteger("unsigned long", random.oneIn(4) ? 4 : 8);
  }
  static const std::vector<std::uint32_t> kCandidates = {0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3};
  const std::uint32_t candidates = random.of(kCandidates);
  const Shape* theirs = nullptr;
  for (std::uint32_t i = 0; i < candidates; ++i) {
    if (theirs == nullptr || !random.oneIn(3)) {
      Shape* changed = shapes.changed(i > 0 && random.oneIn(2) ? *theirs : *local);
      changed->name = random.oneIn(4) ? "root___of_kernel" : random.oneIn(20) ? "other" : "root";
      theirs = changed;
    }
    made.candidates.push_back(emit(*theirs, made.kernel, random));
  }
  made.nobody = made.kernel.string("nobody");
  for (std::uint32_t i = random.below(candidates > 1 ? 3 : 2) + 1; i > 0; --i) {
    Asked asked = randomQuestion(*local, random);
    made.object.string(asked.access.c_str());
    std::vector<Code> probe = {wide(0)};
    const auto relocation = relocate(made, {asked}, probe).front();
    asked.code = randomCode(asked.kind, relocation.localValue, random);
    made.asked.push_back(std::move(asked));
  }
  return made;
}

// ---- libbpf
// ----------------------------------------------------------------------------------------------------------

std::vector<std::byte> elfOf(const Case& made, const std::vector<Asked>& asked) {
  test_support::ElfMaker elf;
  Code code;
  std::vector<test_support::CoreRecord> records;
  std::vector<std::pair<std::size_t, std::size_t>> programs;
  for (const Asked& each : asked) {
    records.push_back({static_cast<std::uint32_t>(code.size() * sizeof(bpf_insn)), made.root,
                       static_cast<std::uint32_t>(btf__find_str(made.object.get(), each.access.c_str())),
                       static_cast<std::uint32_t>(each.kind)});
    const std::size_t begin = code.size();
    code.insert(code.end(), each.code.begin(), each.code.end());
    code.push_back(instruction(BPF_JMP | BPF_EXIT, 0, 0));
    programs.emplace_back(begin, code.size() - begin);
  }
  const std::size_t section = elf.code("socket", code);
  for (std::size_t i = 0; i < programs.size(); ++i) {
    elf.function("p" + std::to_string(i), section, programs[i].first, programs[i].second);
  }
  elf.section("license", std::as_bytes(std::span("GPL", 4)));
  const auto name = static_cast<std::uint32_t>(btf__add_str(made.object.get(), "socket"));
  elf.section(".BTF", made.object.bytes());
  elf.section(".BTF.ext", test_support::extensionOf({{name, records}}));
  return elf.bytes();
}

/// The code of `asked` after libbpf has relocated it for the kernel with BTF `kernelBtf`; nothing if it gives up.
std::optional<std::vector<Code>> byLibbpf(const Case& made, const std::vector<Asked>& asked,
                                          const std::vector<std::byte>& kernelBtf) {
  const auto elf = elfOf(made, asked);
  const UniqueFd kernel = test_support::memfdOf(kernelBtf);
  const std::string path = "/proc/self/fd/" + std::to_string(kernel.get());
  bpf_object_open_opts options{};
  options.sz = sizeof(options);
  options.btf_custom_path = path.c_str();
  options.object_name = "generated";
  const object::ObjectHandle object(bpf_object__open_mem(elf.data(), elf.size(), &options));
  if (!object) {
    std::cerr << "libbpf does not open a generated object: " << std::strerror(errno) << '\n';
    std::exit(1);
  }
  if (bpf_object__prepare(object.get()) != 0) {
    return std::nullopt;
  }
  std::vector<Code> codes;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const bpf_program* program = bpf_object__find_program_by_name(object.get(), ("p" + std::to_string(i)).c_str());
    const bpf_insn* begin = bpf_program__insns(program);
    codes.emplace_back(begin, begin + asked[i].code.size());
  }
  return codes;
}

std::optional<std::vector<Code>> byLibbpf(const Case& made, const std::vector<Asked>& asked) {
  return byLibbpf(made, asked, made.kernel.bytes());
}

std::optional<Code> byLibbpf(const Case& made, const Asked& asked) {
  auto codes = byLibbpf(made, std::vector<Asked>{asked});
  return codes ? std::optional(codes->front()) : std::nullopt;
}

// ---- What is expected where there are several candidates: DESIGN's rule, on what libbpf says of each alone
// ---------------

bool isPoison(const Code& code) {
  return code.front().code == (BPF_JMP | BPF_CALL) && code.front().imm == 0xbad2310;
}

/// Has `candidate` for the only one while it lives.
class Alone {
 public:
  Alone(Case& made, TypeId candidate) : made_(made) {
    for (const TypeId each : made.candidates) {
      names_.push_back(made.kernel.type(each).name_off);
      if (each != candidate) {
        made.kernel.type(each).name_off = made.nobody;
      }
    }
    forgetBytes();
  }

  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

  ~Alone() {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      made_.kernel.type(made_.candidates[i]).name_off = names_[i];
    }
    forgetBytes();
  }

 private:
  /// libbpf keeps the bytes that it has given out until it is asked for a change.
  void forgetBytes() const { made_.kernel.string("nobody"); }

  Case& made_;
  std::vector<std::uint32_t> names_;
};

/// Whether `value` may be an enumerator of 32 bits that libbpf takes for negative.
bool isLarge(std::uint64_t value) {
  return value >= 0x80000000U && value <= 0xffffffffU;
}

/// What libbpf says of one question with one candidate.
struct Answer {
  bool error = false;
  bool found = false;
  std::uint64_t value = 0;
  /// The real instruction afterwards.
  std::optional<Code> code;
};

/// Whether `code` of `asked` is what a question that is answered with "no" becomes.
bool isNo(const Asked& asked, const Code& code) {
  return isPoison(code) ||
         (asked.kind != Kind::typeIdLocal && !core::isFieldKind(asked.kind) && asked.kind != Kind::enumeratorValue &&
          code.front().imm == 0 && code.back().imm == 0) ||
         (asked.kind == Kind::fieldExists && code.front().imm == 0);
}

Answer answerOf(const Case& made, Asked asked, std::uint64_t local) {
  Answer answer;
  answer.code = byLibbpf(made, asked);
  asked.code = wide(local);
  auto code = byLibbpf(made, asked);
  if (!code && asked.kind == Kind::enumeratorValue && isLarge(local)) {
    asked.code = wide(local | 0xffffffff00000000U); // as libbpf would have it
    code = byLibbpf(made, asked);
  }
  if (!code) {
    answer.error = true;
    return answer;
  }
  // The size of a type may be 0.
  if (asked.kind == Kind::typeSize) {
    asked.kind = Kind::typeExists;
    asked.code = wide(1);
    answer.found = !isNo(asked, byLibbpf(made, asked).value());
  } else {
    answer.found = !isNo(asked, *code);
  }
  answer.value = static_cast<std::uint32_t>(code->front().imm) |
                 std::uint64_t{static_cast<std::uint32_t>(code->back().imm)} << 32U;
  return answer;
}

/// The code that each question has to have in the end; nothing for an error.
std::vector<std::optional<Code>> expected(Case& made, const std::vector<core::Relocation>& relocations) {
  const std::size_t questions = made.asked.size();
  std::vector<std::vector<Answer>> answers(questions);
  for (const TypeId candidate : made.candidates) {
    const Alone alone(made, candidate);
    for (std::size_t i = 0; i < questions; ++i) {
      answers[i].push_back(answerOf(made, made.asked[i], relocations[i].localValue));
    }
  }
  std::vector<bool> dropped(made.candidates.size(), false);
  for (std::size_t i = 0; i < questions; ++i) {
    const bool any = std::ranges::any_of(answers[i], &Answer::found);
    for (std::size_t c = 0;
         c < dropped.size() && any && !core::isQuestion(made.asked[i].kind) && made.asked[i].kind != Kind::typeIdLocal;
         ++c) {
      dropped[c] = dropped[c] || (!answers[i][c].found && !answers[i][c].error);
    }
  }
  const bool noneLeft = std::ranges::find(dropped, false) == dropped.end();
  std::vector<std::optional<Code>> codes;
  for (std::size_t i = 0; i < questions; ++i) {
    auto& code = codes.emplace_back();
    std::vector<const Answer*> left;
    for (std::size_t c = 0; c < dropped.size(); ++c) {
      if (noneLeft || !dropped[c] || made.asked[i].kind == Kind::typeIdLocal) {
        left.push_back(&answers[i][c]);
      }
    }
    const auto first = std::ranges::find_if(left, [](const Answer* each) { return each->found; });
    const bool error = std::ranges::any_of(answers[i], &Answer::error);
    bool agree = true;
    for (const Answer* each : left) {
      if (first != left.end() && each->found) {
        agree = agree && each->value == (*first)->value && each->code.has_value() == (*first)->code.has_value() &&
                (!each->code || sameCode(*each->code, *(*first)->code));
      }
      if (noneLeft && first != left.end() && !each->found && !core::isQuestion(made.asked[i].kind)) {
        agree = false;
      }
    }
    if (!error && agree) {
      code = first == left.end() ? left.front()->code : (*first)->code;
    }
  }
  return codes;
}

// ---- Rules
// -----------------------------------------------------------------------------------------------------------

/// Why `ours` may differ from libbpf's `theirs`; null if it may not.
const char* ruleFor(const Asked& asked, const core::Relocation& relocation, const Code& ours,
                    const std::optional<Code>& theirs) {
  // libbpf takes every enumerator of 32 bits for signed; we go by the enum's flag.
  if (asked.kind == Kind::enumeratorValue && (isLarge(relocation.localValue) || isLarge(relocation.value))) {
    if (!theirs || (relocation.outcome == core::Outcome::resolved && theirs->front().imm == ours.front().imm)) {
      return "large enumerators of enums that are not signed";
    }
  }
  // libbpf cuts off what an immediate does not hold.
  if (relocation.fault == core::Fault::immediateTooLarge && theirs && asked.code.size() == 1) {
    return "values larger than the immediate";
  }
  // libbpf takes the width of the first candidate.
  if (relocation.fault == core::Fault::ambiguousLoadSize) {
    return "loads whose width the candidates do not agree on";
  }
  return nullptr;
}

struct Tally {
  std::uint64_t cases = 0;
  std::uint64_t relocations = 0;
  std::uint64_t resolved = 0;
  std::uint64_t poisoned = 0;
  std::uint64_t failed = 0;
  std::uint64_t ambiguous = 0;
  std::uint64_t minimized = 0;
  std::uint64_t differences = 0;
  std::map<std::string, std::uint64_t> rules;
};

std::string textOf(const std::optional<Code>& code) {
  if (!code) {
    return "error";
  }
  std::string text;
  for (const bpf_insn& each : *code) {
    text +=
        "[" + std::to_string(each.code) + " off " + std::to_string(each.off) + " imm " + std::to_string(each.imm) + "]";
  }
  return text;
}

void judge(Tally& tally, std::uint64_t seed, const Asked& asked, const core::Relocation& relocation, const Code& ours,
           const std::optional<Code>& theirs) {
  const bool failed = relocation.outcome == core::Outcome::failed;
  if (failed ? !theirs : theirs && sameCode(*theirs, ours)) {
    return;
  }
  if (const char* rule = ruleFor(asked, relocation, ours, theirs); rule != nullptr) {
    ++tally.rules[rule];
    return;
  }
  ++tally.differences;
  std::cout << "DIFFERENCE --seed " << seed << ": kind " << static_cast<int>(asked.kind) << " access " << asked.access
            << " code " << textOf(asked.code) << ": libbpf " << textOf(theirs) << ", btfd "
            << (failed ? "error" : textOf(ours)) << " fault " << static_cast<int>(relocation.fault) << " local "
            << relocation.localValue << " value " << relocation.value << '\n';
}

bool sameCodes(const std::optional<std::vector<Code>>& left, const std::optional<std::vector<Code>>& right) {
  return left.has_value() == right.has_value() && (!left || std::ranges::equal(*left, *right, sameCode));
}

/// Whether the least of the kernel's BTF that the questions need gives the answers that all of it gives: ours, which
/// are `ours` and `relocations`, and libbpf's.
void judgeMinimized(Tally& tally, std::uint64_t seed, const Case& made, const std::vector<Code>& ours,
                    const std::vector<core::Relocation>& relocations) {
  std::vector<Code> codes;
  for (const Asked& each : made.asked) {
    codes.push_back(each.code);
  }
  const std::vector<Code> before = codes;
  const btfd::btf::NameIndex index(made.kernel.btf(), 1);
  const core::Targets kernel(made.kernel.btf(), index);
  std::vector<core::Usage> usages(1);
  relocate(made, made.asked, codes, kernel.notedIn(usages));
  offline::UsedTypes used(kernel, usages);
  if (used.count() == 0) {
    return; // there is nothing that the kernel has
  }
  const auto differ = [&](const std::string& what) {
    ++tally.differences;
    std::cout << "DIFFERENCE --seed " << seed << ": with minimized BTF, " << what << '\n';
  };
  const auto written = used.write();
  if (!written) {
    differ("which is not written: " + written.error().message);
    return;
  }
  ++tally.minimized;
  const btfd::btf::BtfHandle least(btf__new(written->data(), static_cast<std::uint32_t>(written->size())));
  const btfd::btf::NameIndex leastIndex(*least, 1);
  codes = before;
  const auto again = relocate(made, made.asked, codes, core::Targets(*least, leastIndex));
  for (std::size_t i = 0; i < again.size(); ++i) {
    if (again[i].outcome != relocations[i].outcome || again[i].fault != relocations[i].fault ||
        again[i].value != relocations[i].value || !sameCode(codes[i], ours[i])) {
      differ("kind " + std::to_string(static_cast<int>(made.asked[i].kind)) + " access " + made.asked[i].access + ": " +
             textOf(codes[i]) + " fault " + std::to_string(static_cast<int>(again[i].fault)) + " instead of " +
             textOf(ours[i]) + " fault " + std::to_string(static_cast<int>(relocations[i].fault)));
    }
  }
  if (!sameCodes(byLibbpf(made, made.asked, *written), byLibbpf(made, made.asked))) {
    differ("libbpf's answers are others");
  }
}

void run(Tally& tally, std::uint64_t seed) {
  Case made = makeCase(seed);
  std::vector<Code> ours;
  for (const Asked& each : made.asked) {
    ours.push_back(each.code);
  }
  const auto relocations = relocate(made, made.asked, ours);
  ++tally.cases;
  for (const auto& each : relocations) {
    ++tally.relocations;
    tally.resolved += each.outcome == core::Outcome::resolved ? 1 : 0;
    tally.poisoned += each.outcome == core::Outcome::poisoned ? 1 : 0;
    tally.failed += each.outcome == core::Outcome::failed ? 1 : 0;
  }
  judgeMinimized(tally, seed, made, ours, relocations);
  const bool several = std::ranges::any_of(relocations, [](const auto& each) { return each.candidates > 1; });
  if (several) {
    ++tally.ambiguous;
    const auto codes = expected(made, relocations);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      judge(tally, seed, made.asked[i], relocations[i], ours[i], codes[i]);
    }
    // One question alone, libbpf answers as we do, or finds more to be ambiguous.
    if (made.asked.size() == 1) {
      if (const auto theirs = byLibbpf(made, made.asked)) {
        judge(tally, seed, made.asked[0], relocations[0], ours[0], (*theirs)[0]);
      }
    }
    return;
  }
  // All at once; if libbpf gives up for one of them, each for itself.
  if (const auto theirs = byLibbpf(made, made.asked)) {
    for (std::size_t i = 0; i < theirs->size(); ++i) {
      judge(tally, seed, made.asked[i], relocations[i], ours[i], (*theirs)[i]);
    }
    return;
  }
  for (std::size_t i = 0; i < made.asked.size(); ++i) {
    judge(tally, seed, made.asked[i], relocations[i], ours[i], byLibbpf(made, made.asked[i]));
  }
}

} // namespace

int main(int argc, char** argv) {
  std::uint64_t seed = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  std::uint64_t cases = 5000;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    (option == "--seed" ? seed : cases) = std::strtoull(argv[i + 1], nullptr, 10);
  }
  if (::geteuid() != 0) {
    std::cout << "libbpf asks the kernel before it relocates, which needs root\n";
    return 77;
  }
  libbpf_set_print(nullptr);
  std::cout << "--seed " << seed << " --cases " << cases << std::endl;
  Tally tally;
  for (std::uint64_t i = 0; i < cases; ++i) {
    run(tally, seed + i);
  }
  std::cout << tally.cases << " cases (" << tally.ambiguous << " with several candidates), " << tally.relocations
            << " relocations: " << tally.resolved << " resolved, " << tally.poisoned << " poisoned, " << tally.failed
            << " failed; " << tally.minimized << " minimized; " << tally.differences << " differences\n";
  for (const auto& [rule, count] : tally.rules) {
    std::cout << "  meant: " << count << " for " << rule << '\n';
  }
  return tally.differences == 0 && tally.minimized > 0 && tally.resolved > 0 && tally.poisoned > 0 && tally.failed > 0
             ? 0
             : 1;
}
