#include "counter.h"

SEC("cgroup_skb/ingress")

int on_ingress(struct __sk_buff* packet) {
  countRun();
  return 1;
}

SEC("cgroup_skb/egress")

int on_egress(struct __sk_buff* packet) {
  countRun();
  return 1;
}
