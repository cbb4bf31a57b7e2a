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
  __u32 key = packet->len; // unknown to the verifier: of a known key it may know that the element exists
  return *(int*)bpf_map_lookup_elem(&counter, &key);
}
