#include "counter.h"

SEC("cgroup/dev")

int on_device(struct bpf_cgroup_dev_ctx* context) {
  countRun();
  return 1;
}
