#pragma once

#include <bpf/libbpf.h>

#include <optional>
#include <string>

namespace btfd::loader {

/// Why libbpf gave up on an object before it asked the kernel: what it logs is for who knows libbpf.
struct LoadCause {
  std::string message;
  /// One of these is what it is about; the other is empty.
  std::string program;
  std::string map;
};

/// Looks for what made bpf_object__load fail on `object` with errno value `code`, or gives nothing.
std::optional<LoadCause> findLoadCause(struct bpf_object& object, int code);

/// In which way `info`, an existing map, is not what `map` declares, or nothing: type and sizes.
std::string differenceTo(const struct bpf_map& map, const struct bpf_map_info& info);

/// The same, of number of entries and flags, too: what libbpf wants to agree of a map that is pinned (its
/// map_is_reuse_compat).
std::string formDifference(const struct bpf_map& map, const struct bpf_map_info& info);

} // namespace btfd::loader
