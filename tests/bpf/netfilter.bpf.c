#include "counter.h"

#define NF_ACCEPT 1

struct bpf_nf_ctx;

SEC("netfilter")

int on_packet(struct bpf_nf_ctx* context) {
  countRun();
  return NF_ACCEPT;
}
