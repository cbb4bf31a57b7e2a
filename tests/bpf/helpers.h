// What every program includes, in the order that these headers need: libbpf's use the kernel's types without including
// their header.
#pragma once

// clang-format off
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
// clang-format on
