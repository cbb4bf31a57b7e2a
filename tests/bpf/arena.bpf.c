// Memory that programs and processes share, with global variables in it (Linux 6.9).
#include "counter.h"

#define __arena __attribute__((address_space(1)))

struct {
  __uint(type, BPF_MAP_TYPE_ARENA);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 100);
  __ulong(map_extra, 1ULL << 45);
} arena SEC(".maps");

void __arena* bpf_arena_alloc_pages(void* map, void __arena* address, __u32 pages, int node, __u64 flags) __ksym __weak;

__u64 __arena in_arena SEC(".addr_space.1") = 40;
__u64 seen;
__u64 allocated;

SEC("syscall")

int touch(void* context) {
  countRun();
  in_arena += 2;
  seen = in_arena;
  __u64 __arena* page = bpf_arena_alloc_pages(&arena, 0, 1, -1, 0);
  if (page) {
    *page = 7;
    allocated = *page;
  }
  return 0;
}
