#include "counter.h"

SEC("ksyscall/getppid")

int on_call(void* context) {
  countRun();
  return 0;
}

SEC("kretsyscall/getppid")

int on_return(void* context) {
  countRun();
  return 0;
}
