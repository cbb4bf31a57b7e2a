// Prints one line a task: its id and name.
#include "counter.h"
#include "kernel_types.h"

SEC("iter/task")

int dump_task(struct bpf_iter__task* context) {
  struct task_struct* task = context->task;
  if (!task)
    return 0;
  countRun();
  BPF_SEQ_PRINTF(context->meta->seq, "%d %s\n", task->pid, task->comm);
  return 0;
}
