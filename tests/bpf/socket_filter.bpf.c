#include "counter.h"

SEC("socket")

int keep(struct __sk_buff* packet) {
  countRun();
  return (int)packet->len;
}
