#include "counter.h"

SEC("tcx/ingress")

int on_ingress(struct __sk_buff* packet) {
  countRun();
  return TCX_NEXT;
}

SEC("tcx/egress")

int on_egress(struct __sk_buff* packet) {
  countRun();
  return TCX_NEXT;
}
