// Where to attach, and with which cookies, is left to the request.
#include "probes.h"

SEC("kprobe")

int on_enter(void* context) {
  countRunOf(bpf_get_attach_cookie(context));
  return 0;
}

SEC("?kprobe.multi")

int on_enter_several(void* context) {
  countRunOf(bpf_get_attach_cookie(context));
  return 0;
}

SEC("uprobe")

int on_call(void* context) {
  countRunOf(bpf_get_attach_cookie(context));
  return 0;
}

SEC("?uprobe.multi")

int on_call_several(void* context) {
  countRunOf(bpf_get_attach_cookie(context));
  return 0;
}
