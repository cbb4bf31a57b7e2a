// Asks the driver of the interface that it is bound to.
#include "counter.h"

extern int bpf_xdp_metadata_rx_timestamp(const struct xdp_md* context, __u64* timestamp) __ksym;

SEC("xdp")

int ask(struct xdp_md* context) {
  __u64 timestamp = 0;
  countRun();
  bpf_xdp_metadata_rx_timestamp(context, &timestamp);
  return XDP_PASS;
}
