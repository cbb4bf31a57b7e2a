// May refuse to open a file, and does not.
#include "counter.h"

SEC("fmod_ret/security_file_open")

int BPF_PROG(on_open, const void* file, int result) {
  countRun();
  return 0;
}
