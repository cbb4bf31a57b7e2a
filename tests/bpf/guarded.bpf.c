// Ways to guard code that needs what a kernel may lack, here what no kernel has: all of it loads everywhere.
#include "counter.h"
#include "kernel_types.h"

#include <stdbool.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct___with_wishes {
  int field_that_no_kernel_has;
};

#pragma clang attribute pop

enum bpf_func_id___with_wishes { BPF_FUNC_that_no_kernel_has = 99999 };

static long (*const helperThatNoKernelHas)(void) = (void*)99999;

const volatile bool wanted = false;

static __always_inline bool has_field(void) {
  return bpf_core_field_exists(struct task_struct___with_wishes, field_that_no_kernel_has);
}

static __always_inline int read_field(void) {
  struct task_struct___with_wishes* task = (void*)bpf_get_current_task();
  return BPF_CORE_READ(task, field_that_no_kernel_has);
}

static __noinline int has_field_says_function(void) {
  return has_field();
}

SEC("raw_tp/sched_process_exec")

int by_field(void* context) {
  countRun();
  return has_field() ? read_field() : 0;
}

SEC("raw_tp/sched_process_exec")

int by_function(void* context) {
  countRun();
  return has_field_says_function() ? read_field() : 0;
}

SEC("raw_tp/sched_process_exec")

int by_constant(void* context) {
  countRun();
  return wanted ? read_field() : 0;
}

SEC("raw_tp/sched_process_exec")

int by_helper(void* context) {
  countRun();
  if (bpf_core_enum_value_exists(enum bpf_func_id___with_wishes, BPF_FUNC_that_no_kernel_has))
    return helperThatNoKernelHas();
  return 0;
}
