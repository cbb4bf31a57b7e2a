// Needs nothing of the kernel's BTF: no CO-RE relocation, no attach target that is looked up by name.
#include "counter.h"

SEC("socket")

int keep(struct __sk_buff* packet) {
  countRun();
  return (int)packet->len;
}

SEC("xdp")

int pass(struct xdp_md* context) {
  countRun();
  return XDP_PASS;
}
