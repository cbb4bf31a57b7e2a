// A program array that the object itself fills.
#include "counter.h"

int second(struct __sk_buff* packet);

struct {
  __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
  __uint(max_entries, 2);
  __uint(key_size, 4);
  __array(values, int(struct __sk_buff*));
} targets SEC(".maps") = {
    .values = {[1] = &second},
};

SEC("socket")

int first(struct __sk_buff* packet) {
  bpf_tail_call(packet, &targets, 1);
  return 0;
}

SEC("socket")

int second(struct __sk_buff* packet) {
  countRun();
  return 42;
}
