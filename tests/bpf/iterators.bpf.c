#include "counter.h"
#include "kernel_types.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct bpf_map;

struct bpf_iter__bpf_map_elem {
  struct bpf_iter_meta* meta;
  struct bpf_map* map;
  void* key;
  void* value;
};

#pragma clang attribute pop

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 3);
  __type(key, __u32);
  __type(value, __u64);
} entries SEC(".maps");

SEC("iter/bpf_map_elem")

int dump_entries(struct bpf_iter__bpf_map_elem* context) {
  __u32* key = context->key;
  if (!key)
    return 0;
  __u32 number = *key;
  BPF_SEQ_PRINTF(context->meta->seq, "entry %d\n", number);
  return 0;
}
