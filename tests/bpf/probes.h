// For tests of probes: runs are counted by the cookie that the attachment has been given, below 8.
#pragma once

#include "counter.h"

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 8);
  __type(key, __u32);
  __type(value, __u64);
} by_cookie SEC(".maps");

static inline void countRunOf(__u64 cookie) {
  __u32 key = cookie;
  __u64* runs = bpf_map_lookup_elem(&by_cookie, &key);
  if (runs)
    __sync_fetch_and_add(runs, 1);
  countRun();
}
