// A guard that only the kernel that loads it can tell the outcome of.
#include "counter.h"
#include "kernel_types.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct___with_wishes {
  int field_that_no_kernel_has;
};

#pragma clang attribute pop

extern int LINUX_KERNEL_VERSION __kconfig;

SEC("raw_tp/sched_process_exec")

int by_version(void* context) {
  struct task_struct___with_wishes* task = (void*)bpf_get_current_task();
  countRun();
  if (LINUX_KERNEL_VERSION < KERNEL_VERSION(99, 0, 0))
    return 0;
  return BPF_CORE_READ(task, field_that_no_kernel_has);
}
