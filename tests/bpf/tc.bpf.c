#include "counter.h"

SEC("tc")

int classify(struct __sk_buff* packet) {
  countRun();
  return 0; // TC_ACT_OK
}
