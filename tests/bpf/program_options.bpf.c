// Programs that are loaded otherwise than their sections say.
#include "counter.h"

SEC("socket")

int pass(struct __sk_buff* packet) {
  countRun();
  return 1;
}

// Reads across the boundary of two words, which is allowed on machines that can, unless the flags forbid it.
SEC("socket")

int misaligned(struct __sk_buff* packet) {
  __u32 key = 0;
  void* value = bpf_map_lookup_elem(&counter, &key);
  return value ? *(volatile __u32*)(value + 1) : 0;
}
