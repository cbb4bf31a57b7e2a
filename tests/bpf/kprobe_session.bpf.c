#include "counter.h"

SEC("kprobe.session/do_nanosleep")

int on_sleep(void* context) {
  countRun();
  return 0; // 1 would leave out the run at the function's return
}
