// Compares the instructions of objects after this project's CO-RE relocation with those after libbpf's.
// usage: btfd_relocations [--btf FILE] OBJECT...     Needs root: libbpf makes maps before it relocates.
#include "base/unique_fd.h"
#include "libbpf_code.h"
#include "object/opened_object.h"
#include "object/relocate_image.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace btfd;               // NOLINT
using namespace btfd::differential; // NOLINT

/// Sizes that the object leaves to whoever loads it.
void giveSizes(bpf_map& map) {
  if (bpf_map__max_entries(&map) == 0) {
    bpf_map__set_max_entries(&map, 1);
  }
  if (bpf_map__type(&map) == BPF_MAP_TYPE_STACK_TRACE && bpf_map__value_size(&map) == 0) {
    bpf_map__set_value_size(&map, sizeof(std::uint64_t));
  }
}

/// Instructions after relocation by libbpf; an error where it gives up.
Result<Code> prepare(bpf_object* opened) {
  const object::ObjectHandle object(opened);
  if (!object) {
    return failErrno("open", errno);
  }
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object.get()) {
    bpf_map__set_pin_path(map, nullptr);
    giveSizes(*map);
  }
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get()) {
    // SEC("?...") too: libbpf leaves a program that is not to be loaded unrelocated.
    bpf_program__set_autoload(program, bpf_program__type(program) != BPF_PROG_TYPE_UNSPEC);
  }
  if (const int error = bpf_object__prepare(object.get()); error != 0) {
    return failErrno("prepare", -error);
  }
  return codeOf(*object);
}

struct Tally {
  std::size_t objects = 0;
  std::size_t relocations = 0;
  std::size_t poisoned = 0;
  std::size_t failed = 0;
  std::size_t instructions = 0;
  std::size_t refused = 0;
  std::size_t differences = 0;
  std::map<std::string, std::size_t> meant;
  std::chrono::nanoseconds time{};
};

/// An object on its way through this project's relocation.
struct Relocated {
  object::ClientBytes bytes;
  bool isForeign = false;
  object::CoreRecords records;
  std::vector<core::Relocation> relocations;

  [[nodiscard]] bool failed() const {
    return std::ranges::any_of(relocations, [](const auto& each) { return each.outcome == core::Outcome::failed; });
  }

  /// The relocation of an instruction, or null.
  [[nodiscard]] const core::Relocation* at(const std::string& program, std::size_t instruction) const {
    const auto found = std::ranges::find_if(relocations, [&](const auto& each) {
      return records.functionOf(each) == program && records.instructionOf(each) == instruction;
    });
    return found == relocations.end() ? nullptr : &*found;
  }
};

Result<Relocated> relocate(Tally& tally, const std::string& path, const core::Targets& targets) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  auto bytes = object::ClientBytes::read(file, 1U << 30U);
  const auto image =
      bytes ? object::CheckedImage::check(*bytes, object::ByteOrders::any) : std::unexpected(bytes.error());
  auto records = image ? object::CoreRecords::read(*image) : std::unexpected(image.error());
  if (!records) {
    return std::unexpected(std::move(records.error()));
  }
  const auto start = std::chrono::steady_clock::now();
  auto relocations = records->relocate(*bytes, targets);
  tally.time += std::chrono::steady_clock::now() - start;
  ++tally.objects;
  tally.relocations += relocations.size();
  for (const auto& each : relocations) {
    tally.poisoned += each.outcome == core::Outcome::poisoned ? 1 : 0;
    tally.failed += each.outcome == core::Outcome::failed ? 1 : 0;
  }
  return Relocated{.bytes = std::move(*bytes),
                   .isForeign = image->isForeign(),
                   .records = std::move(*records),
                   .relocations = std::move(relocations)};
}

// ---- Rules: where a difference is meant, and why
// --------------------------------------------------------------------

/// For a relocation that fails, and is the only kind of failure; null if there is no rule.
const char* ruleForFailure(core::Fault fault) {
  // Candidates of which none has all that the object asks for: libbpf answers by the order of relocations.
  return fault == core::Fault::contradictoryCandidates ? "contradictory candidates" : nullptr;
}

/// For an instruction that differs.
const char* ruleForInstruction(const Relocated& object, const core::Relocation& relocation, const bpf_insn& theirs,
                               const bpf_insn& ours) {
  // libbpf shifts as its own machine would have to (bpf_core_calc_field_relo), whatever the object is for.
  const bool onlyImmediate = theirs.code == ours.code && theirs.dst_reg == ours.dst_reg &&
                             theirs.src_reg == ours.src_reg && theirs.off == ours.off;
  return object.isForeign && relocation.record.kind == core::Kind::fieldLeftShift && onlyImmediate
             ? "left shifts of bitfields in foreign byte order"
             : nullptr;
}

// ---- Comparing
// ------------------------------------------------------------------------------------------------------

void differ(Tally& tally, const std::string& path, const std::string& what) {
  ++tally.differences;
  std::cout << "DIFFERENCE " << path << ": " << what << '\n';
}

void compareProgram(Tally& tally, const std::string& path, const std::string& name, const Relocated& object,
                    const std::vector<bpf_insn>& theirs, const std::vector<bpf_insn>& ours) {
  tally.instructions += theirs.size();
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const bpf_insn& want = theirs[i];
    const bpf_insn& got = ours[i];
    if (std::memcmp(&want, &got, sizeof(want)) == 0) {
      continue;
    }
    const core::Relocation* relocation = object.at(name, i);
    if (const char* rule = relocation == nullptr ? nullptr : ruleForInstruction(object, *relocation, want, got)) {
      ++tally.meant[rule];
      continue;
    }
    char line[200];
    std::snprintf(line, sizeof line, "program %s, instruction %zu: libbpf %02x off %d imm %d, btfd %02x off %d imm %d",
                  name.c_str(), i, want.code, want.off, want.imm, got.code, got.off, got.imm);
    differ(tally, path, line);
  }
}

void compare(Tally& tally, const std::string& path, const Relocated& object, const Code& theirs, const Code& ours) {
  for (const auto& [name, code] : theirs) {
    const auto found = ours.find(name);
    if (found == ours.end() || found->second.size() != code.size()) {
      differ(tally, path, "program " + name + " has another length");
    } else {
      compareProgram(tally, path, name, object, code, found->second);
    }
  }
}

/// Relocations of this project failed: libbpf has to fail, or a rule for each to say why not.
void compareFailure(Tally& tally, const std::string& path, const Relocated& object, const Result<Code>& theirs) {
  ++tally.refused;
  for (const auto& each : object.relocations) {
    if (each.outcome != core::Outcome::failed) {
      continue;
    }
    std::cout << path << ": failed: fault " << static_cast<int>(each.fault)
              << (theirs ? "" : "; libbpf: " + theirs.error().message) << '\n';
    const char* rule = ruleForFailure(each.fault);
    if (theirs && rule == nullptr) {
      differ(tally, path, "libbpf relocates what btfd does not");
    } else if (theirs) {
      ++tally.meant[rule];
    }
  }
}

void run(Tally& tally, const std::string& path, const char* btf, const core::Targets& targets) {
  bpf_object_open_opts options{};
  options.sz = sizeof(options);
  options.btf_custom_path = btf;
  const auto theirs = prepare(bpf_object__open_file(path.c_str(), &options));
  const auto object = relocate(tally, path, targets);
  if (!object) {
    ++tally.refused;
    std::cout << path << ": refused: " << object.error().message << '\n';
    if (theirs) {
      differ(tally, path, "libbpf takes it, btfd does not: " + object.error().message);
    }
    return;
  }
  if (object->failed()) {
    compareFailure(tally, path, *object, theirs);
    return;
  }
  options.btf_custom_path = nullptr;
  options.object_name = "object";
  const auto bytes = object->bytes.bytes();
  const auto ours = prepare(bpf_object__open_mem(bytes.data(), bytes.size(), &options));
  if (theirs && ours) {
    compare(tally, path, *object, *theirs, *ours);
    return;
  }
  ++tally.refused;
  std::cout << path << ": not comparable: " << (theirs ? ours : theirs).error().message << '\n';
  if (theirs.has_value() != ours.has_value()) {
    differ(tally, path,
           theirs ? "only libbpf prepares it: " + ours.error().message
                  : "only btfd prepares it; libbpf: " + theirs.error().message);
  }
}

} // namespace

int main(int argc, char** argv) {
  libbpf_set_print(nullptr);
  std::vector<std::string> paths(argv + 1, argv + argc);
  const char* custom = nullptr;
  if (paths.size() >= 2 && paths[0] == "--btf") {
    custom = argv[2];
    paths.erase(paths.begin(), paths.begin() + 2);
  }
  btfd::btf::KernelSpecSource source;
  if (custom != nullptr) {
    source = {.directory = "/nonexistent", .fallbackPath = custom, .modules = false};
  }
  if (::geteuid() != 0) {
    std::cout << "making maps needs root\n";
    return 77;
  }
  const auto spec = btfd::btf::KernelSpec::build(source, 1);
  if (!spec) {
    std::cout << spec.error().message << '\n';
    return 77;
  }
  const core::Targets targets(**spec);
  Tally tally;
  for (const std::string& path : paths) {
    run(tally, path, custom, targets);
  }
  std::cout << tally.objects << " objects, " << tally.relocations << " relocations (" << tally.poisoned << " poisoned, "
            << tally.failed << " failed), " << tally.refused << " refused, " << tally.instructions << " instructions, "
            << tally.differences << " differences, " << std::chrono::duration<double, std::micro>(tally.time).count()
            << " us\n";
  for (const auto& [rule, count] : tally.meant) {
    std::cout << "  meant: " << count << " for " << rule << '\n';
  }
  return tally.differences == 0 && tally.objects > 0 ? 0 : 1;
}
