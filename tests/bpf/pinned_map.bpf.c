// Asks for its map to be pinned below the loader's directory in bpffs, and to be taken from there if it exists.
#include "counter.h"

#ifndef PINNED_ENTRIES
#define PINNED_ENTRIES 16
#endif

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, PINNED_ENTRIES);
  __type(key, __u32);
  __type(value, __u64);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} pinned_hash SEC(".maps");

SEC("socket")

int touch(struct __sk_buff* packet) {
  __u32 key = 1;
  __u64 value = packet->len;
  countRun();
  bpf_map_update_elem(&pinned_hash, &key, &value, BPF_ANY);
  return 0;
}
