// What the kernel has, by its name only, and what no kernel has.
#include "counter.h"

extern const void kfree __ksym;
extern const void no_such_symbol __ksym __weak;
extern const int no_such_variable __ksym __weak;

__u64 limit SEC(".data.first") = 1;
__u64 address SEC(".data.first") = 0;
__u64 absent SEC(".data.first") = 0;

SEC("socket")

int look(struct __sk_buff* packet) {
  countRun();
  address = (__u64)&kfree;
  absent = (__u64)&no_such_symbol | (__u64)&no_such_variable;
  return limit;
}
