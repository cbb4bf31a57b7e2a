// Programs whose sections do not say what they are for: Load's request does.
#include "counter.h"

SEC("?fentry")

int on_enter(void* context) {
  countRun();
  return 0;
}

SEC("?fexit/do_exit")

int on_return(void* context) {
  countRun();
  return 0;
}

SEC("?freplace")

int replacement(struct xdp_md* context) {
  countRun();
  return XDP_PASS;
}
