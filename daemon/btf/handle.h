#pragma once

#include <bpf/btf.h>

#include <memory>

namespace btfd::btf {

struct BtfDeleter {
  void operator()(struct ::btf* btf) const { btf__free(btf); }
};

/// Owns one of libbpf's `struct btf`. The owner of a split BTF keeps its base alive for longer.
using BtfHandle = std::unique_ptr<struct ::btf, BtfDeleter>;

} // namespace btfd::btf
