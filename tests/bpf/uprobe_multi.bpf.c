// Where to attach is left to the request.
#include "counter.h"

SEC("uprobe.multi")

int on_call(void* context) {
  countRun();
  return 0;
}

SEC("uretprobe.multi")

int on_return(void* context) {
  countRun();
  return 0;
}

SEC("?uprobe.session")

int on_both(void* context) {
  countRun();
  return 0;
}
