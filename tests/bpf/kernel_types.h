// The kernel types that the test programs read: only the fields that they use. Every access is relocated (CO-RE), so
// neither order nor offsets matter here.
#pragma once

#include "helpers.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
  unsigned int val;
} kuid_t;

struct cred {
  kuid_t uid;
};

struct task_struct {
  int pid;
  int tgid;
  char comm[16];
  struct task_struct* real_parent;
  const struct cred* cred;
  unsigned int flags;
};

struct linux_binprm {
  const char* filename;
};

struct seq_file {
  void* private;
};

struct bpf_iter_meta {
  struct seq_file* seq;
  __u64 session_id;
  __u64 seq_num;
};

struct bpf_iter__task {
  struct bpf_iter_meta* meta;
  struct task_struct* task;
};

#pragma clang attribute pop
