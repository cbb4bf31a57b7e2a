#include "counter.h"

SEC("lsm/file_open")

int on_file_open(void* context) {
  countRun();
  return 0;
}

SEC("?lsm.s/file_open")

int on_file_open_sleepable(void* context) {
  countRun();
  return 0;
}

SEC("?lsm_cgroup/socket_create")

int on_socket(void* context) {
  countRun();
  return 1;
}
