#include "multi_probes.h"

#include "base/unique_fd.h"
#include "job.h"

#include <array>
#include <cerrno>
#include <cstdint>

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace btfd::loader {

namespace {

template <typename Pointer>
std::uint64_t address(Pointer pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer); // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
}

/// bpf(2) itself: what libbpf is asked for, the seam takes for a part of a load.
UniqueFd call(enum bpf_cmd command, union bpf_attr& attributes) {
  return UniqueFd(static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof(attributes))));
}

/// A program that returns 0, for links of this type.
UniqueFd loadProgram(enum bpf_attach_type type) {
  static constexpr std::array<bpf_insn, 2> kReturnZero{
      bpf_insn{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
      bpf_insn{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
  union bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_KPROBE;
  attributes.expected_attach_type = type;
  attributes.insns = address(kReturnZero.data());
  attributes.insn_cnt = kReturnZero.size();
  attributes.license = address("GPL");
  return call(BPF_PROG_LOAD, attributes);
}

/// What the kernel says of `link`, which asks for something that cannot be: no kernel makes a link of it.
int linkError(BorrowedFd program, enum bpf_attach_type type, union bpf_attr& link) {
  link.link_create.prog_fd = static_cast<__u32>(program.get());
  link.link_create.attach_type = type;
  return call(BPF_LINK_CREATE, link) ? 0 : errno;
}

bool probeKprobeMulti() {
  const UniqueFd program = loadProgram(BPF_TRACE_KPROBE_MULTI);
  if (!program) {
    return errno != EINVAL;
  }
  union bpf_attr link{};
  link.link_create.kprobe_multi.cnt = 1;
  link.link_create.kprobe_multi.addrs = UINT64_MAX; // nothing can be read there
  const int error = linkError(program, BPF_TRACE_KPROBE_MULTI, link);
  return error == EFAULT || error == EPERM;
}

/// As libbpf does it (probe_uprobe_multi_link in features.c).
bool probeUprobeMulti() {
  const UniqueFd program = loadProgram(BPF_TRACE_UPROBE_MULTI);
  if (!program) {
    return errno != EINVAL;
  }
  const std::uint64_t offset = 0;
  union bpf_attr link{};
  link.link_create.uprobe_multi.path = address("/");
  link.link_create.uprobe_multi.offsets = address(&offset);
  link.link_create.uprobe_multi.cnt = 1;
  if (const int error = linkError(program, BPF_TRACE_UPROBE_MULTI, link); error != EBADF) {
    return error == EPERM;
  }
  // Kernels that took a thread for the process do not look at this number before the path.
  link.link_create.uprobe_multi.pid = UINT32_MAX;
  return linkError(program, BPF_TRACE_UPROBE_MULTI, link) == EINVAL;
}

} // namespace

bool kernelHasKprobeMulti() {
  static const bool has = probeKprobeMulti();
  return has;
}

bool kernelHasUprobeMulti() {
  static const bool has = probeUprobeMulti();
  return has;
}

void prepareForSingleProbes(struct bpf_object& object) {
  for (struct bpf_program* program : autoloadedPrograms(object)) {
    const auto type = bpf_program__expected_attach_type(program);
    if ((type == BPF_TRACE_KPROBE_MULTI && !kernelHasKprobeMulti()) ||
        (type == BPF_TRACE_UPROBE_MULTI && !kernelHasUprobeMulti())) {
      bpf_program__set_expected_attach_type(program, static_cast<enum bpf_attach_type>(0));
    }
  }
}

} // namespace btfd::loader
