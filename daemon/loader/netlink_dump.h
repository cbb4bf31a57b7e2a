#pragma once

#include "base/error.h"

#include <cstdint>
#include <vector>

namespace btfd::loader {

// What rtnetlink(7) tells of traffic control, and libbpf does not ask. For the thread's network namespace.

/// A filter of any kind, or the place of one: those have handle 0.
struct TcFilterEntry {
  std::uint32_t priority = 0;
  std::uint32_t handle = 0;
};

/// All filters at `parent` of an interface; none if there is no qdisc.
Result<std::vector<TcFilterEntry>> tcFiltersOn(int interface, std::uint32_t parent);

/// Whether the interface has a clsact qdisc.
Result<bool> hasClsact(int interface);

} // namespace btfd::loader
