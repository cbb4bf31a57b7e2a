#include "counter.h"

SEC("cgroup/sysctl")

int on_sysctl(struct bpf_sysctl* context) {
  countRun();
  return 1;
}
