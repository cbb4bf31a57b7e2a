#include "counter.h"

SEC("cgroup/connect4")

int on_connect(struct bpf_sock_addr* context) {
  countRun();
  return 1;
}
