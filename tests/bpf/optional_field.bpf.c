// SEC("?..."): an optional program reads a field that no kernel has, without a guard; one that is always loaded reads one
// that all have.
#include "counter.h"
#include "wishes.h"

SEC("raw_tp/sched_process_exec")

int always(struct bpf_raw_tracepoint_args* context) {
  struct task_struct___with_wishes* task = (void*)bpf_get_current_task();
  countRun();
  return BPF_CORE_READ(task, pid);
}

SEC("?raw_tp/sched_process_exec")

int on_request(struct bpf_raw_tracepoint_args* context) {
  struct task_struct___with_wishes* task = (void*)bpf_get_current_task();
  countRun();
  return BPF_CORE_READ(task, field_that_no_kernel_has);
}
