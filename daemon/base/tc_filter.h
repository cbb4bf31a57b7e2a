#pragma once

#include <cstdint>
#include <vector>

namespace btfd {

/// Where a tc filter is, or is to be: on the clsact qdisc of an interface. No descriptor keeps it there, and so this is
/// what there is to know of it to take it away again. For the thread's network namespace.
struct TcFilter {
  /// Number of the interface's network namespace.
  std::uint64_t networkNamespace = 0;
  int interface = 0;
  bool ingress = true;
  std::uint32_t priority = 0;
  std::uint32_t handle = 0;
  /// Whether the client has chosen the handle, so that another will not do.
  bool handleGiven = false;
  /// Whether the interface had no clsact qdisc when the filter was planned.
  bool qdiscMissing = false;
  /// The kernel's ids of the program that it runs; while that is being replaced, of the new one, too.
  std::vector<std::uint32_t> programs;
};

} // namespace btfd
