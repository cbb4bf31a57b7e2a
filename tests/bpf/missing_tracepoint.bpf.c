// Wants a tracepoint that no kernel has, by a slip of the pen.
#include "counter.h"

SEC("tp_btf/sched_process_exek")

int on_exec(void* context) {
  countRun();
  return 0;
}
