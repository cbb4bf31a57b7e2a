#pragma once

#include "base/error.h"
#include "libbpf_log.h"

#include <bpf/libbpf.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace btfd::object {

struct ObjectDeleter {
  void operator()(struct bpf_object* object) const { bpf_object__close(object); }
};

using ObjectHandle = std::unique_ptr<struct bpf_object, ObjectDeleter>;

/// How to open an object file.
struct OpenOptions {
  /// What it is to be called; "object" if empty.
  std::string name{};
  /// Where maps go that it wants pinned by name.
  std::string pinDirectory{};
  /// Lines as in the kernel's .config, CONFIG_NAME=value, which __kconfig variables have their values from before they
  /// have them from the running kernel's.
  std::string kconfig{};
};

/// Has libbpf open the object file `image`, which needs no privileges: nothing is asked of the kernel yet. The error
/// has the first of the warnings in `log`.
Result<ObjectHandle> openWithLibbpf(std::span<const std::byte> image, const OpenOptions& how, const LibbpfLog& log);

/// Why `object` has nothing that could be loaded; empty if it has. Functions outside of any section are no programs to
/// libbpf, which then loads nothing and calls it a success.
std::string whyNothingToLoad(struct bpf_object& object);

/// Why `program` is of type BPF_PROG_TYPE_UNSPEC, which it is, and what to do.
std::string whyNoType(const struct bpf_program& program);

/// The number of the type that the object gives `map`, which may be any, also one that enum bpf_map_type cannot hold.
std::uint32_t mapType(const struct bpf_map& map);

/// What libbpf calls map type `type`, or null.
const char* mapTypeName(std::uint32_t type);

} // namespace btfd::object
