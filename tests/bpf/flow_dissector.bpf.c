#include "counter.h"

SEC("flow_dissector")

int dissect(struct __sk_buff* packet) {
  countRun();
  return BPF_FLOW_DISSECTOR_CONTINUE;
}
