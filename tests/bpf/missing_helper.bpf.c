// Calls a helper that no kernel has, without a guard.
#include "counter.h"

static long (*const helperThatNoKernelHas)(void) = (void*)99999;

SEC("raw_tp/sched_process_exec")

int on_exec(void* context) {
  countRun();
  return helperThatNoKernelHas();
}
