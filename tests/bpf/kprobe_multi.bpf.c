#include "counter.h"

SEC("kprobe.multi/do_nanosleep*")

int on_sleep(void* context) {
  countRun();
  return 0;
}

SEC("kretprobe.multi/do_nanosleep")

int on_sleep_return(void* context) {
  countRun();
  return 0;
}
