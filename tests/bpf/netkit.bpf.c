#include "counter.h"

SEC("netkit/primary")

int on_primary(struct __sk_buff* packet) {
  countRun();
  return TCX_NEXT;
}

SEC("netkit/peer")

int on_peer(struct __sk_buff* packet) {
  countRun();
  return TCX_NEXT;
}
