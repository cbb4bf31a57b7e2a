// A program with a function that another object's program may replace.
#include "counter.h"

__attribute__((noinline)) int decide(struct xdp_md* context) {
  volatile int verdict = XDP_DROP;
  return verdict;
}

SEC("xdp")

int filter(struct xdp_md* context) {
  return decide(context);
}
