// Takes the verifier long, and is accepted: 2^BRANCHES paths, none of which can be pruned, as each leaves another
// constant in `path` and the last condition depends on it. `path` is the slot of the stack that is compared last, which
// makes each attempt to prune dear; and each path ends in a loop that is walked iteration by iteration. That comes near
// the million instructions at which the verifier gives up. With MANY there are many such programs in the object.
//
// Few branches are ever pending at once, on purpose: a long loop with an undecided branch in each round passes the
// verifier's limit of 8192 pending branches, and there Linux 6.18.44 dereferences a null pointer (in
// maybe_fork_scalars()) instead of rejecting the program.
#include "counter.h"

#define BRANCHES 11
#define ROUNDS 84

static __always_inline int slow(void) {
  __u64 path = 0;
#pragma clang loop unroll(full)
  for (int slot = 8; slot < 512; slot += 8)
    asm volatile(
        "call %[random]\n*(u64 *)(r10 - %[slot]) = r0" ::[random] "i"(BPF_FUNC_get_prandom_u32), [slot] "i"(slot)
        : "r0", "r1", "r2", "r3", "r4", "r5", "memory");
  asm volatile("r1 = 0\n*(u64 *)(r10 - 512) = r1" ::: "r1", "memory");
#pragma clang loop unroll(full)
  for (int i = 0; i < BRANCHES; ++i)
    asm volatile(
        "call %[random]\nif r0 & 1 goto +3\n"
        "r1 = *(u64 *)(r10 - 512)\nr1 += %[bit]\n*(u64 *)(r10 - 512) = r1" ::[random] "i"(BPF_FUNC_get_prandom_u32),
        [bit] "i"(1 << i)
        : "r0", "r1", "r2", "r3", "r4", "r5", "memory");
#pragma clang loop unroll(disable)
  for (__u32 i = 0; i < ROUNDS; ++i)
    asm volatile("r0 = %[i]\nif r0 == 1000 goto +0\nif r0 == 1001 goto +0" ::[i] "r"(i) : "r0");
  asm volatile("%[path] = *(u64 *)(r10 - 512)" : [path] "=r"(path)::"memory");
  if (path == 1U << BRANCHES)
    return 1;
  return 0;
}

#define PROGRAM(NAME)                                                                                                  \
  SEC("socket") int NAME(struct __sk_buff* packet) {                                                                   \
    countRun();                                                                                                        \
    return slow();                                                                                                     \
  }

PROGRAM(slow_0)
#ifdef MANY
PROGRAM(slow_1)
PROGRAM(slow_2)
PROGRAM(slow_3)
PROGRAM(slow_4)
PROGRAM(slow_5)
PROGRAM(slow_6)
PROGRAM(slow_7)
PROGRAM(slow_8)
PROGRAM(slow_9)
PROGRAM(slow_10)
PROGRAM(slow_11)
PROGRAM(slow_12)
PROGRAM(slow_13)
PROGRAM(slow_14)
PROGRAM(slow_15)
#endif
