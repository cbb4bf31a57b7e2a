#include "sought_type.h"

namespace btfd::object {

std::optional<SoughtType> soughtFor(const struct bpf_program& program) {
  const auto type = bpf_program__type(&program);
  if (type == BPF_PROG_TYPE_LSM) {
    return SoughtType{.what = "LSM hook", .prefix = "bpf_lsm_", .kind = BTF_KIND_FUNC};
  }
  if (type != BPF_PROG_TYPE_TRACING) {
    return std::nullopt;
  }
  switch (bpf_program__expected_attach_type(&program)) {
  case BPF_TRACE_RAW_TP:
    return kTracepointType;
  case BPF_TRACE_ITER:
    return SoughtType{.what = "iterator", .prefix = "bpf_iter_", .kind = BTF_KIND_FUNC};
  default:
    return SoughtType{.what = "function", .prefix = "", .kind = BTF_KIND_FUNC};
  }
}

} // namespace btfd::object
