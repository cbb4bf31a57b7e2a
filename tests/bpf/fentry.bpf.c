#include "counter.h"

SEC("fentry/do_nanosleep")

int on_sleep(void* context) {
  countRun();
  return 0;
}

SEC("fexit/do_nanosleep")

int on_sleep_return(void* context) {
  countRun();
  return 0;
}
