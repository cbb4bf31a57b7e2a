#pragma once

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace btfd::object {

/// What libbpf looks for in kernel BTF for a program's target: a type of this kind, called `prefix` and the target's
/// name (libbpf's btf_get_kernel_prefix_kind).
struct SoughtType {
  /// What it is to people.
  std::string_view what;
  std::string_view prefix;
  std::uint32_t kind = BTF_KIND_FUNC;
};

/// Tracepoints, which raw_tracepoint programs name, too, though libbpf does not look for theirs.
inline constexpr SoughtType kTracepointType{.what = "tracepoint", .prefix = "btf_trace_", .kind = BTF_KIND_TYPEDEF};

/// What is looked for when `program` is loaded, or nothing.
std::optional<SoughtType> soughtFor(const struct bpf_program& program);

} // namespace btfd::object
