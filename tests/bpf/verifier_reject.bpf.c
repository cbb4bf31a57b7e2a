// The verifier rejects it, at the end of a long way: the reason stands at the end of a long log.
#include "counter.h"

SEC("socket")

int rejected(struct __sk_buff* packet) {
  __u32 key = 0;
  __u64 sum = 0;
#pragma clang loop unroll(full)
  for (int i = 0; i < 60; ++i) {
    key = packet->len + (__u32)i;
    __u64* value = bpf_map_lookup_elem(&counter, &key);
    if (value)
      sum += *value;
  }
  __u64* unchecked = bpf_map_lookup_elem(&counter, &key);
  *unchecked = sum; // may be null: rejected
  return 0;
}
