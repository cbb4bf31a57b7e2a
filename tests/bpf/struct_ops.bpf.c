// A congestion control that never lets the window grow: the least that tcp_register_congestion_control() accepts.
#include "counter.h"
#include "kernel_types.h"

struct sock;

struct tcp_congestion_ops {
  __u32 (*ssthresh)(struct sock* sk);
  void (*cong_avoid)(struct sock* sk, __u32 ack, __u32 acked);
  __u32 (*undo_cwnd)(struct sock* sk);
  char name[16];
};

SEC("struct_ops/ssthresh")

__u32 BPF_PROG(ssthresh, struct sock* sk) {
  countRun();
  return 2;
}

SEC("struct_ops/cong_avoid")

void BPF_PROG(cong_avoid, struct sock* sk, __u32 ack, __u32 acked) {
  countRun();
}

SEC("struct_ops/undo_cwnd")

__u32 BPF_PROG(undo_cwnd, struct sock* sk) {
  countRun();
  return 2;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops frozen_window = {
    .ssthresh = (void*)ssthresh,
    .cong_avoid = (void*)cong_avoid,
    .undo_cwnd = (void*)undo_cwnd,
    .name = "btfd_frozen",
};
