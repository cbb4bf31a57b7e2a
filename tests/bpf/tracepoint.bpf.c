#include "counter.h"

SEC("tracepoint/sched/sched_process_exec")

int on_exec(void* context) {
  countRun();
  return 0;
}
