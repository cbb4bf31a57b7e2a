// Functions and variables of the kernel, by BTF: one that it must have, and some that it need not have.
#include "counter.h"
#include "kernel_types.h"

struct task_struct* bpf_task_acquire(struct task_struct* p) __ksym;
void bpf_task_release(struct task_struct* p) __ksym;
int function_that_no_kernel_has(int number) __ksym __weak;
extern const int variable_that_no_kernel_has __ksym __weak;

SEC("tp_btf/task_newtask")

int BPF_PROG(on_new_task, struct task_struct* task) {
  struct task_struct* held = bpf_task_acquire(task);
  countRun();
  if (held)
    bpf_task_release(held);
  if (bpf_ksym_exists(function_that_no_kernel_has))
    return function_that_no_kernel_has(1);
  return &variable_that_no_kernel_has ? 1 : 0;
}
