#include "counter.h"

SEC("sk_lookup")

int on_lookup(struct bpf_sk_lookup* context) {
  countRun();
  return SK_PASS;
}
