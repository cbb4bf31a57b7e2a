// SEC("?..."): not loaded unless asked for. One of the two optional programs would be rejected.
#include "counter.h"

SEC("socket")

int always(struct __sk_buff* packet) {
  countRun();
  return 0;
}

SEC("?socket")

int on_request(struct __sk_buff* packet) {
  countRun();
  return (int)packet->len;
}

SEC("?socket")

int never_valid(struct __sk_buff* packet) {
  __u32 key = 0;
  return *(int*)bpf_map_lookup_elem(&counter, &key);
}
