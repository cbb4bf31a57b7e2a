// Reads a field that no kernel has, without a guard.
#include "counter.h"
#include "wishes.h"

SEC("raw_tp/sched_process_exec")

int on_exec(struct bpf_raw_tracepoint_args* context) {
  struct task_struct___with_wishes* task = (void*)bpf_get_current_task();
  countRun();
  return BPF_CORE_READ(task, pid) + BPF_CORE_READ(task, field_that_no_kernel_has);
}
