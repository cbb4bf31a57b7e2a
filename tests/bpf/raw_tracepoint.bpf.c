#include "counter.h"

SEC("raw_tp/sched_process_exec")

int on_exec(void* context) {
  countRun();
  return 0;
}
