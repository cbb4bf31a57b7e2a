// Twelve programs, of which the kernel refuses the seventh, which is loaded only where it is asked for.
#include "counter.h"

#define PROGRAM(NAME)                                                                                                  \
  SEC("xdp") int NAME(struct xdp_md* packet) {                                                                         \
    countRun();                                                                                                        \
    return XDP_PASS;                                                                                                   \
  }

PROGRAM(first)
PROGRAM(second)
PROGRAM(third)
PROGRAM(fourth)
PROGRAM(fifth)
PROGRAM(sixth)

SEC("?xdp")

int seventh(struct xdp_md* packet) {
  return *(int*)(long)packet->data_end; // no bounds were checked
}

PROGRAM(eighth)
PROGRAM(ninth)
PROGRAM(tenth)
PROGRAM(eleventh)
PROGRAM(twelfth)
