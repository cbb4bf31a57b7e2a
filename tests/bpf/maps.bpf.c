// One map of each common sort.
#include "counter.h"

struct value {
  __u64 first;
  __u32 second;
};

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16);
  __type(key, __u32);
  __type(value, struct value);
} a_hash SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 8);
  __type(key, __u32);
  __type(value, __u64);
} an_array SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 2);
  __type(key, __u32);
  __type(value, __u64);
} a_percpu_array SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 32);
  __type(key, __u64);
  __type(value, __u64);
} an_lru_hash SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4096);
} a_ringbuf SEC(".maps");

struct inner {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 4);
  __type(key, __u32);
  __type(value, __u64);
} an_inner SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, 2);
  __type(key, __u32);
  __array(values, struct inner);
} an_outer SEC(".maps") = {
    .values = {[0] = &an_inner},
};

SEC("socket")

int touch_all(struct __sk_buff* packet) {
  __u32 key = 0;
  __u64 wide = 0;
  struct value value = {.first = packet->len, .second = packet->protocol};
  countRun();
  bpf_map_update_elem(&a_hash, &key, &value, BPF_ANY);
  bpf_map_update_elem(&an_lru_hash, &wide, &wide, BPF_ANY);
  bpf_map_update_elem(&an_array, &key, &wide, BPF_ANY);
  bpf_map_update_elem(&a_percpu_array, &key, &wide, BPF_ANY);
  bpf_ringbuf_output(&a_ringbuf, &wide, sizeof(wide), 0);
  void* inner = bpf_map_lookup_elem(&an_outer, &key);
  if (inner)
    bpf_map_update_elem(inner, &key, &wide, BPF_ANY);
  return 0;
}
