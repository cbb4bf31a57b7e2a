// Compares the instructions of objects after this project's CO-RE relocation with those after libbpf's.
// usage: btfd_relocations [--btf FILE] OBJECT...     Needs root: libbpf makes maps before it relocates.
#include "base/unique_fd.h"
#include "object/relocate_image.h"

#include <bpf/libbpf.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace btfd; // NOLINT

struct Close {
  void operator()(bpf_object* object) const { bpf_object__close(object); }
};

using Object = std::unique_ptr<bpf_object, Close>;
using Code = std::map<std::string, std::vector<bpf_insn>>;

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
  const Object object(opened);
  if (!object) {
    return failErrno("open", errno);
  }
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object.get()) {
    bpf_map__set_pin_path(map, nullptr);
    giveSizes(*map);
  }
  if (const int error = bpf_object__prepare(object.get()); error != 0) {
    return failErrno("prepare", -error);
  }
  Code code;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get()) {
    const bpf_insn* begin = bpf_program__insns(program);
    auto& copy = code[bpf_program__name(program)];
    copy.assign(begin, begin + bpf_program__insn_cnt(program));
    for (bpf_insn& each : copy) {
      const bool mapLoad = each.code == (BPF_LD | BPF_IMM | BPF_DW) &&
                           (each.src_reg == BPF_PSEUDO_MAP_FD || each.src_reg == BPF_PSEUDO_MAP_VALUE);
      if (mapLoad) {
        each.imm = 0; // a descriptor
      }
    }
  }
  return code;
}

struct Tally {
  std::size_t objects = 0;
  std::size_t relocations = 0;
  std::size_t poisoned = 0;
  std::size_t failed = 0;
  std::size_t skipped = 0;
  std::size_t instructions = 0;
  std::size_t differences = 0;
  std::chrono::nanoseconds time{};
};

void differ(Tally& tally, const std::string& path, const std::string& what) {
  ++tally.differences;
  std::cout << "DIFFERENCE " << path << ": " << what << '\n';
}

void compare(Tally& tally, const std::string& path, const Code& theirs, const Code& ours) {
  for (const auto& [name, code] : theirs) {
    const auto found = ours.find(name);
    if (found == ours.end() || found->second.size() != code.size()) {
      differ(tally, path, "program " + name + " has another length");
      continue;
    }
    tally.instructions += code.size();
    for (std::size_t i = 0; i < code.size(); ++i) {
      const bpf_insn& want = code[i];
      const bpf_insn& got = found->second[i];
      if (std::memcmp(&want, &got, sizeof(want)) != 0) {
        char line[200];
        std::snprintf(line, sizeof line,
                      "program %s, instruction %zu: libbpf %02x off %d imm %d, btfd %02x off %d imm %d", name.c_str(),
                      i, want.code, want.off, want.imm, got.code, got.off, got.imm);
        differ(tally, path, line);
      }
    }
  }
}

void run(Tally& tally, const std::string& path, const char* btf, const core::Targets& targets) {
  bpf_object_open_opts options{};
  options.sz = sizeof(options);
  options.btf_custom_path = btf;
  const auto theirs = prepare(bpf_object__open_file(path.c_str(), &options));
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  auto bytes = object::ClientBytes::read(file, 1U << 30U);
  const auto image = bytes ? object::CheckedImage::check(*bytes) : std::unexpected(bytes.error());
  const auto records = image ? object::CoreRecords::read(*image) : std::unexpected(image.error());
  if (!records) {
    ++tally.skipped;
    std::cout << path << ": refused: " << records.error().message << '\n';
    // Refused on purpose: libbpf swaps such an object's bytes and loads it.
    const bool foreign = records.error().message.find("byte order") != std::string::npos ||
                         records.error().message.find("big-endian") != std::string::npos;
    if (theirs && !foreign) {
      differ(tally, path, "libbpf takes it, btfd does not: " + records.error().message);
    }
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto relocations = records->relocate(*bytes, targets);
  const auto time = std::chrono::steady_clock::now() - start;
  tally.time += time;
  std::cout << path << ": " << relocations.size() << " relocations, "
            << std::chrono::duration<double, std::micro>(time).count() << " us\n";
  ++tally.objects;
  tally.relocations += relocations.size();
  bool failed = false;
  for (const auto& each : relocations) {
    tally.poisoned += each.outcome == core::Outcome::poisoned ? 1 : 0;
    if (each.outcome == core::Outcome::failed) {
      ++tally.failed;
      failed = true;
      std::cout << path << ": failed: fault " << static_cast<int>(each.fault) << '\n';
    }
  }
  options.btf_custom_path = nullptr;
  options.object_name = "object";
  const auto ours = prepare(bpf_object__open_mem(bytes->bytes().data(), bytes->bytes().size(), &options));
  if (!theirs || !ours) {
    ++tally.skipped;
    std::cout << path << ": not comparable: " << (theirs ? ours : theirs).error().message << '\n';
    if (theirs.has_value() != ours.has_value() && !(failed && !theirs)) {
      differ(tally, path,
             theirs ? "only libbpf prepares it: " + ours.error().message
                    : "only btfd prepares it; libbpf: " + theirs.error().message);
    }
    return;
  }
  if (failed) {
    differ(tally, path, "libbpf relocates what btfd does not");
  }
  compare(tally, path, *theirs, *ours);
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
            << tally.failed << " failed), " << tally.skipped << " not comparable, " << tally.instructions
            << " instructions, " << tally.differences << " differences, "
            << std::chrono::duration<double, std::micro>(tally.time).count() << " us\n";
  return tally.differences == 0 && tally.objects > 0 ? 0 : 1;
}
