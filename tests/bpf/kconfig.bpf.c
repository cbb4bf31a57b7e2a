// Values from the kernel's configuration, and what a loader puts in their place.
#include "counter.h"

extern int CONFIG_HZ __kconfig;
extern _Bool CONFIG_BTFD_FLAG __kconfig __weak;
extern enum libbpf_tristate CONFIG_BTFD_MODULE __kconfig __weak;
extern char CONFIG_BTFD_TEXT[16] __kconfig __weak;
extern __u64 CONFIG_BTFD_WIDE __kconfig __weak;

struct {
  __u64 wide;
  __s32 hz;
  __u32 module;
  char text[16];
  _Bool flag;
} seen SEC(".data.seen") = {};

SEC("socket")

int look(struct __sk_buff* packet) {
  countRun();
  seen.hz = CONFIG_HZ;
  seen.flag = CONFIG_BTFD_FLAG;
  seen.module = CONFIG_BTFD_MODULE;
  seen.wide = CONFIG_BTFD_WIDE;
  for (int i = 0; i < 16; ++i)
    seen.text[i] = CONFIG_BTFD_TEXT[i];
  return 0;
}
