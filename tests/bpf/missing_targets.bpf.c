// Attaches to what no kernel has.
#include "counter.h"

SEC("fentry/function_that_no_kernel_has")

int on_entry(void* context) {
  countRun();
  return 0;
}

SEC("tp_btf/tracepoint_that_no_kernel_has")

int on_event(void* context) {
  countRun();
  return 0;
}

SEC("raw_tp/tracepoint_that_no_kernel_has")

int on_raw_event(void* context) {
  countRun();
  return 0;
}
