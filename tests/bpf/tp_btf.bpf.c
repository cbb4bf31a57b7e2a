#include "counter.h"

SEC("tp_btf/sched_process_exec")

int on_exec(void* context) {
  countRun();
  return 0;
}
