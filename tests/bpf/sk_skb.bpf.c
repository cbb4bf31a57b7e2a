#include "counter.h"

struct {
  __uint(type, BPF_MAP_TYPE_SOCKMAP);
  __uint(max_entries, 4);
  __type(key, __u32);
  __type(value, __u64);
} sockets SEC(".maps");

SEC("sk_skb/stream_parser")

int parse(struct __sk_buff* packet) {
  return (int)packet->len;
}

SEC("sk_skb/stream_verdict")

int judge(struct __sk_buff* packet) {
  countRun();
  return SK_PASS;
}
