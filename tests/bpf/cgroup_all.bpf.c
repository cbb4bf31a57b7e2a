// A program for each hook of cgroups that is called for a socket, of which a test loads one at a time: kernels lack
// some.
#include "counter.h"

#define PROGRAM(section, name, type)                                                                                   \
  SEC("?" section)                                                                                                     \
  int name(type* context) {                                                                                            \
    countRun();                                                                                                        \
    return 1;                                                                                                          \
  }

PROGRAM("cgroup/bind4", bind4, struct bpf_sock_addr)
PROGRAM("cgroup/bind6", bind6, struct bpf_sock_addr)
PROGRAM("cgroup/connect4", connect4, struct bpf_sock_addr)
PROGRAM("cgroup/connect6", connect6, struct bpf_sock_addr)
PROGRAM("cgroup/connect_unix", connect_unix, struct bpf_sock_addr)
PROGRAM("cgroup/sendmsg4", sendmsg4, struct bpf_sock_addr)
PROGRAM("cgroup/sendmsg6", sendmsg6, struct bpf_sock_addr)
PROGRAM("cgroup/sendmsg_unix", sendmsg_unix, struct bpf_sock_addr)
PROGRAM("cgroup/recvmsg4", recvmsg4, struct bpf_sock_addr)
PROGRAM("cgroup/recvmsg6", recvmsg6, struct bpf_sock_addr)
PROGRAM("cgroup/recvmsg_unix", recvmsg_unix, struct bpf_sock_addr)
PROGRAM("cgroup/getpeername4", getpeername4, struct bpf_sock_addr)
PROGRAM("cgroup/getpeername6", getpeername6, struct bpf_sock_addr)
PROGRAM("cgroup/getpeername_unix", getpeername_unix, struct bpf_sock_addr)
PROGRAM("cgroup/getsockname4", getsockname4, struct bpf_sock_addr)
PROGRAM("cgroup/getsockname6", getsockname6, struct bpf_sock_addr)
PROGRAM("cgroup/getsockname_unix", getsockname_unix, struct bpf_sock_addr)
PROGRAM("cgroup/post_bind4", post_bind4, struct bpf_sock)
PROGRAM("cgroup/post_bind6", post_bind6, struct bpf_sock)
PROGRAM("cgroup/sock_create", sock_create, struct bpf_sock)
PROGRAM("cgroup/sock_release", sock_release, struct bpf_sock)
PROGRAM("cgroup/getsockopt", getsockopt, struct bpf_sockopt)
PROGRAM("cgroup/setsockopt", setsockopt, struct bpf_sockopt)
PROGRAM("sockops", sock_ops, struct bpf_sock_ops)
