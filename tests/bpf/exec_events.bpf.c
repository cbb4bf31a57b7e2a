// Reports each exec: who, whose child, what. The probe of the README.
#include "counter.h"
#include "kernel_types.h"

struct event {
  __u32 pid;
  __u32 ppid;
  __u32 uid;
  char comm[16];
  char filename[128];
};

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 256 * 1024);
} events SEC(".maps");

SEC("tp_btf/sched_process_exec")

int BPF_PROG(on_exec, struct task_struct* task, int oldPid, struct linux_binprm* binprm) {
  countRun();
  struct event* event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
  if (!event)
    return 0;
  event->pid = BPF_CORE_READ(task, tgid);
  event->ppid = BPF_CORE_READ(task, real_parent, tgid);
  event->uid = BPF_CORE_READ(task, cred, uid.val);
  BPF_CORE_READ_STR_INTO(&event->comm, task, comm);
  bpf_probe_read_kernel_str(event->filename, sizeof(event->filename), BPF_CORE_READ(binprm, filename));
  bpf_ringbuf_submit(event, 0);
  return 0;
}
