// Runs are counted by the cookie of the attachment; the last first argument that each has seen is kept, too.
#include "probes.h"

#include <asm/ptrace.h>
#include <stdbool.h>

#define BPF_USDT_MAX_SPEC_CNT 4
#pragma clang diagnostic ignored "-Wsign-compare"
#include <bpf/usdt.bpf.h>

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 8);
  __type(key, __u32);
  __type(value, __s64);
} arguments SEC(".maps");

SEC("usdt")

int on_probe(struct pt_regs* context) {
  __u32 cookie = bpf_usdt_cookie(context);
  long argument = -1;
  bpf_usdt_arg(context, 0, &argument);
  __s64 kept = argument;
  bpf_map_update_elem(&arguments, &cookie, &kept, BPF_ANY);
  countRunOf(cookie);
  return 0;
}
