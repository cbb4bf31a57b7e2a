#include "counter.h"

SEC("cgroup/sock_create")

int on_create(struct bpf_sock* context) {
  countRun();
  return 1;
}
