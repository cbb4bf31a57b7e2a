// Reads a field under a name that comes near to one that the kernel has, in a function that the program calls.
#include "counter.h"
#include "kernel_types.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct___misspelled {
  void* real_parnt;
};

#pragma clang attribute pop

static __attribute__((noinline)) __u64 parent_of(struct task_struct___misspelled* task) {
  return (__u64)BPF_CORE_READ(task, real_parnt);
}

SEC("raw_tp/sched_process_exec")

int on_exec(struct bpf_raw_tracepoint_args* context) {
  countRun();
  return parent_of((void*)bpf_get_current_task()) != 0;
}
