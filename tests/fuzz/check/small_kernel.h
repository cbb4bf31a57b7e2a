#pragma once

#include "check/target_kernel.h"
#include "test_support/btf_maker.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace btfd::check {

/// BTF of a kernel that has a little of everything that an object may ask for.
inline test_support::BtfMaker smallKernelBtf() {
  test_support::BtfMaker btf;
  const auto integer = btf.integer();
  const auto task =
      btf.structure("task_struct", {{"flags", integer}, {"pid", integer}, {"comm", btf.array(integer, 4)}});
  const auto prototype = btf.prototype(btf.pointer(task), {{"p", btf.pointer(task)}});
  btf.function("bpf_task_acquire", prototype);
  btf.function("do_nanosleep", prototype);
  btf.function("bpf_lsm_file_open", prototype);
  btf.function("__x64_sys_read", prototype);
  btf.variable("bpf_prog_active", integer);
  btf.definedAs("btf_trace_sched_process_exec", btf.pointer(prototype));
  btf.structure("tcp_congestion_ops", {{"ssthresh", btf.pointer(prototype)}, {"name", btf.array(integer, 4)}});
  btf.structure("bpf_struct_ops_tcp_congestion_ops", {{"data", integer}});
  btf.enumeration("bpf_func_id", {{"BPF_FUNC_unspec", 0}, {"BPF_FUNC_map_lookup_elem", 1}, {"BPF_FUNC_loop", 181}});
  btf.enumeration("bpf_map_type", {{"BPF_MAP_TYPE_UNSPEC", 0}, {"BPF_MAP_TYPE_HASH", 1}, {"BPF_MAP_TYPE_ARRAY", 2}});
  btf.enumeration("bpf_prog_type", {{"BPF_PROG_TYPE_UNSPEC", 0}, {"BPF_PROG_TYPE_SOCKET_FILTER", 1}});
  btf.enumeration("bpf_attach_type", {{"BPF_CGROUP_INET_INGRESS", 0}, {"__MAX_BPF_ATTACH_TYPE", 1}});
  return btf;
}

/// What a module adds to that kernel.
inline test_support::BtfMaker smallModuleBtf(const test_support::BtfMaker& kernel) {
  auto btf = test_support::BtfMaker::splitFrom(kernel);
  btf.function("of_a_module", btf.prototype(0, {}));
  btf.structure("of_a_module", {{"member", btf.integer("short", 2)}});
  return btf;
}

/// That kernel, with its module, or as it is on a machine of the other byte order.
inline std::unique_ptr<TargetKernel> smallKernel(bool isBigEndian) {
  const auto btf = smallKernelBtf();
  const auto module = smallModuleBtf(btf);
  const auto moduleBytes = module.bytes();
  if (isBigEndian) {
    btf__set_endianness(btf.get(), BTF_BIG_ENDIAN);
  }
  auto kernel = TargetKernel::make("small", {.btf = btf.bytes(), .distilledBase = {}});
  if (!kernel || (!isBigEndian && !(*kernel)->addModule("module", {.btf = moduleBytes, .distilledBase = {}}))) {
    std::abort();
  }
  return std::move(*kernel);
}

/// A file with these bytes.
inline UniqueFd fileOf(const std::uint8_t* data, std::size_t size) {
  UniqueFd file(::memfd_create("fuzz", MFD_CLOEXEC));
  if (::write(file.get(), data, size) != static_cast<ssize_t>(size)) {
    std::abort();
  }
  return file;
}

} // namespace btfd::check
