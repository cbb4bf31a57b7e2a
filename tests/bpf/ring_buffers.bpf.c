// A ring buffer that a program writes and a process reads, and one the other way round (Linux 6.1).
#include "counter.h"

enum kind { STARTED, ENDED = 7 };

struct record {
  __u64 number;
  __u32 length;
  enum kind kind;
  char name[16];
};

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4096);
} records SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_USER_RINGBUF);
  __uint(max_entries, 4096);
} orders SEC(".maps");

const struct record* unused __attribute__((unused)); // so that BTF has the type
__u64 drained;
__u64 sum;

static long take(struct bpf_dynptr* order, void* context) {
  __u64 number = 0;
  bpf_dynptr_read(&number, sizeof(number), order, 0, 0);
  sum += number;
  return 0;
}

SEC("socket")

int emit(struct __sk_buff* packet) {
  struct record record = {.number = 1ULL << 63, .length = packet->len, .kind = ENDED, .name = "a record"};
  countRun();
  bpf_ringbuf_output(&records, &record, sizeof(record), 0);
  return 0;
}

SEC("syscall")

int drain(void* context) {
  countRun();
  drained = bpf_user_ringbuf_drain(&orders, take, 0, 0);
  return 0;
}
