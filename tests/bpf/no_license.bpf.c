// Calls a helper that is for GPL-compatible programs only, and says no license.
#include "helpers.h"

SEC("raw_tp/sched_process_exec")

int unlicensed(void* context) {
  __u64 value = 0;
  bpf_probe_read_kernel(&value, sizeof(value), context);
  return (int)value;
}
