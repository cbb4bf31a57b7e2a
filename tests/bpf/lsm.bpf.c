#include "counter.h"

SEC("lsm/file_open")

int on_file_open(void* context) {
  countRun();
  return 0;
}
