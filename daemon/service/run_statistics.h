#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "registry/registry.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <set>

namespace btfd::service {

/// How often the kernel has run programs, and how long that took. Counting costs each run of every program on the
/// machine some time, so the kernel does it only while somebody wants it (BPF_ENABLE_STATS of bpf(2)): here, while
/// connections that have asked are open.
class RunStatistics {
 public:
  /// Has the kernel count from now on until `connection` is closed.
  Result<void> countFor(std::uint64_t connection);

  void connectionClosed(std::uint64_t connection);

  /// io.btfd.RunStatistics of a program.
  static nlohmann::json of(const registry::Program& program);

 private:
  std::set<std::uint64_t> connections_;
  UniqueFd counting_;
};

} // namespace btfd::service
