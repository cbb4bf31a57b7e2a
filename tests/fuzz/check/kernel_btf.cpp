// A kernel's BTF, or a module's, of either byte order, raw, packed or in an ELF file: whatever its bytes, an error or a
// kernel that an object can be checked on.
#include "check/btf_file.h"
#include "check/check_object.h"
#include "small_kernel.h"
#include "test_support/elf_maker.h"

#include <bpf/libbpf.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

using namespace btfd;
using namespace btfd::check;

namespace {

/// An object that asks for a field, a type's and an enumerator's existence, a function to attach to and a tracepoint.
ObjectToCheck smallObject() {
  test_support::BtfMaker btf;
  const auto task = btf.structure("task_struct", {{"pid", btf.integer()}});
  const auto color = btf.enumeration("bpf_func_id", {{"BPF_FUNC_loop", 181}});
  const std::uint32_t section = btf.string("fentry/do_nanosleep");
  const auto mov = [](std::int32_t value) {
    return bpf_insn{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = value};
  };
  const bpf_insn leave{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0};
  const std::vector<bpf_insn> code{mov(0), mov(1), mov(1), leave};
  const auto kind = [](core::Kind each) { return static_cast<std::uint32_t>(each); };
  const std::vector<test_support::CoreRecord> records{
      {0, task, btf.string("0:0"), kind(core::Kind::fieldByteOffset)},
      {8, task, btf.string("0"), kind(core::Kind::typeMatches)},
      {16, color, btf.string("0"), kind(core::Kind::enumeratorExists)},
  };
  test_support::ElfMaker elf;
  const std::size_t number = elf.code("fentry/do_nanosleep", code);
  elf.function("program", number, 0, code.size());
  elf.section(".BTF", btf.bytes());
  elf.section(".BTF.ext", test_support::extensionOf({{section, records}}));
  const auto bytes = elf.bytes();
  auto object = ObjectToCheck::read(fileOf(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
  if (!object) {
    std::abort();
  }
  return std::move(*object);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  libbpf_set_print(nullptr);
  static const ObjectToCheck object = smallObject();
  constexpr std::size_t kLimit = std::size_t{1} << 20U;
  const auto bytes = readBtf(fileOf(data, size), kLimit);
  if (!bytes) {
    return 0;
  }
  if (isOfModule(*bytes)) {
    const auto kernel = smallKernel(false);
    if (kernel->addModule("fuzz", *bytes)) {
      static_cast<void>(checkObject(object, *kernel));
    }
    return 0;
  }
  const auto kernel = TargetKernel::make("fuzz", *bytes);
  if (!kernel) {
    return 0;
  }
  const Report report = checkObject(object, **kernel, {.allRelocations = true});
  if (report.relocations.size() != 3) {
    std::abort();
  }
  return 0;
}
