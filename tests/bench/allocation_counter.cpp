// Counts the allocations of the processes that it is preloaded into (LD_PRELOAD), in a file that btfd-bench reads.
// glibc only: its allocator stays reachable by the names with __libc_.

#include "allocation_table.h"

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

namespace {

using btfd::bench::AllocationSlot;
using btfd::bench::AllocationTable;

// Global, as malloc(3) has no place for an argument of ours. Null before the constructor has run, or without a file.
AllocationTable* table = nullptr;
AllocationSlot* slot = nullptr;

void takeSlot() {
  const std::uint32_t index = table->used.fetch_add(1);
  slot = index < btfd::bench::kAllocationSlots ? &table->slots[index] : nullptr;
  if (slot != nullptr) {
    slot->process = ::getpid();
  }
}

__attribute__((constructor)) void openTable() {
  const char* path = std::getenv(btfd::bench::kAllocationTableVariable);
  const int file = path == nullptr ? -1 : ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) {
    return;
  }
  void* memory = ::mmap(nullptr, sizeof(AllocationTable), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) {
    return;
  }
  table = static_cast<AllocationTable*>(memory);
  takeSlot();
  ::pthread_atfork(nullptr, nullptr, takeSlot); // a worker counts for itself
}

void count(std::size_t size) {
  if (slot != nullptr) {
    slot->allocations.fetch_add(1, std::memory_order_relaxed);
    slot->bytes.fetch_add(size, std::memory_order_relaxed);
  }
}

} // namespace

extern "C" {

void* malloc(std::size_t size) {
  count(size);
  return __libc_malloc(size);
}

void* calloc(std::size_t number, std::size_t size) {
  count(number * size);
  return __libc_calloc(number, size);
}

void* realloc(void* old, std::size_t size) {
  count(size);
  return __libc_realloc(old, size);
}

void* memalign(std::size_t alignment, std::size_t size) {
  count(size);
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  count(size);
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** result, std::size_t alignment, std::size_t size) {
  count(size);
  *result = __libc_memalign(alignment, size);
  return *result == nullptr ? ENOMEM : 0;
}
}
