#include "counter.h"

struct {
  __uint(type, BPF_MAP_TYPE_SOCKMAP);
  __uint(max_entries, 4);
  __type(key, __u32);
  __type(value, __u64);
} sockets SEC(".maps");

SEC("sk_msg")

int on_message(struct sk_msg_md* message) {
  countRun();
  return SK_PASS;
}
