// What allocation_counter.cpp, in the processes of a daemon, shares with btfd-bench: a file mapped by all of them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace btfd::bench {

/// Environment variable with the file's path.
inline constexpr const char* kAllocationTableVariable = "BTFD_BENCH_ALLOCATIONS";

/// One process. Counts only grow.
struct AllocationSlot {
  std::atomic<std::int32_t> process;
  std::atomic<std::uint64_t> allocations;
  std::atomic<std::uint64_t> bytes;
};

/// Processes past the last slot are not counted; a daemon with its workers has tens.
inline constexpr std::uint32_t kAllocationSlots = 1024;

struct AllocationTable {
  /// Slots that are taken, or that were wanted when none was left.
  std::atomic<std::uint32_t> used;
  std::array<AllocationSlot, kAllocationSlots> slots;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "the table is shared by processes");

} // namespace btfd::bench
