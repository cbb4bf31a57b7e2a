#include "counter.h"

SEC("kprobe/do_nanosleep")

int on_sleep(void* context) {
  countRun();
  return 0;
}

SEC("kretprobe/do_nanosleep")

int on_sleep_return(void* context) {
  countRun();
  return 0;
}
