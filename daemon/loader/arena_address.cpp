#include "arena_address.h"

#include "base/text.h"
#include "object/opened_object.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

namespace btfd::loader {

namespace {

/// Why nothing can be mapped there; 0 if it can, or an errno value.
int whyNotFree(std::uint64_t address, std::size_t size) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that the object has as a number
  void* place = ::mmap(reinterpret_cast<void*>(address), size, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (place == MAP_FAILED) {
    return errno;
  }
  ::munmap(place, size);
  return 0;
}

std::string hexadecimal(std::uint64_t number) {
  std::array<char, 2 * sizeof(number)> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

} // namespace

Outcome<void> checkArenaAddresses(const MapsByName& maps) {
  for (const auto& [name, map] : maps.all()) {
    const std::uint64_t address = bpf_map__map_extra(map);
    if (object::mapType(*map) != BPF_MAP_TYPE_ARENA || address == 0) {
      continue;
    }
    const std::size_t size = std::size_t{bpf_map__max_entries(map)} * static_cast<std::size_t>(::getpagesize());
    if (const int why = whyNotFree(address, size); why != 0) {
      return invalidObject("arena " + quotedName(name) + " cannot be at address " + hexadecimal(address) +
                           " (map_extra): " + (why == EEXIST ? "it is in use" : std::strerror(why)) +
                           "; leave the address out, or choose another");
    }
  }
  return {};
}

} // namespace btfd::loader
