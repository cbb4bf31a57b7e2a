// Maps whose form a loader's options change.
#include "counter.h"

__u64 growing[1] SEC(".data.growing");
__u64 fixed SEC(".data.fixed") = 7;

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16);
  __type(key, __u32);
  __type(value, __u64);
} a_hash SEC(".maps");

struct inner {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 4);
  __type(key, __u32);
  __type(value, __u64);
};

struct {
  __uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
  __uint(max_entries, 2);
  __type(key, __u32);
  __array(values, struct inner);
} an_outer SEC(".maps");

#ifdef WITHOUT_INNER
struct {
  __uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
  __uint(max_entries, 2);
  __uint(key_size, 4);
  __uint(value_size, 4);
} without_inner SEC(".maps");
#endif

SEC("socket")

int touch(struct __sk_buff* packet) {
  __u32 key = 1;
  __u64 value = packet->len;
  countRun();
  growing[0] += 1;
  fixed += 1;
  bpf_map_update_elem(&a_hash, &key, &value, BPF_ANY);
  return 0;
}

#ifdef WITHOUT_INNER
SEC("socket")

int look_inside(struct __sk_buff* packet) {
  __u32 key = 0;
  countRun();
  void* inner = bpf_map_lookup_elem(&without_inner, &key);
  if (inner)
    return bpf_map_lookup_elem(inner, &key) != 0;
  return 0;
}
#endif
