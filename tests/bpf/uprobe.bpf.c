// Where to attach is left to the request: the sections name neither binary nor function.
#include "counter.h"

SEC("uprobe")

int on_call(void* context) {
  countRun();
  return 0;
}

SEC("uretprobe")

int on_return(void* context) {
  countRun();
  return 0;
}
