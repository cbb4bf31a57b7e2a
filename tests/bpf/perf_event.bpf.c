#include "counter.h"

SEC("perf_event")

int on_sample(void* context) {
  countRun();
  return 0;
}
