// Functions that nobody has put into a section: libbpf takes them for what programs call, and there is no program.
#include "counter.h"

int forgotten(void* context) {
  countRun();
  return 0;
}

int forgotten_too(void* context) {
  return 0;
}
