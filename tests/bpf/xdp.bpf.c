#include "counter.h"

SEC("xdp")

int pass(struct xdp_md* context) {
  countRun();
  return XDP_PASS;
}
