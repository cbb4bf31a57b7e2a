// A program in a section whose name means no type of program.
#include "counter.h"

SEC("no_such_program_type")

int typeless(void* context) {
  countRun();
  return 0;
}
