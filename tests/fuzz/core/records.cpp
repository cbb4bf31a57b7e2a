// A .BTF.ext section: an error, or records that lie within it; and never records where libbpf would see none.
#include "core/records.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace {

bool libbpfTakes(std::span<const std::byte> section) {
  static const auto kSilent = libbpf_set_print(nullptr);
  static_cast<void>(kSilent);
  btf_ext* extension = btf_ext__new(reinterpret_cast<const __u8*>(section.data()), // NOLINT
                                    static_cast<__u32>(section.size()));
  btf_ext__free(extension);
  return extension != nullptr;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  std::vector<std::byte> section(input.begin(), input.end());
  const auto records = btfd::core::readRecords(section);
  if (!records) {
    return 0;
  }
  for (const btfd::core::Record& each : records->records) {
    if (each.section >= records->sections.size()) {
      std::abort();
    }
  }
  // Of the other byte order libbpf knows records of one size only; such objects are refused before.
  if (!records->foreign && !records->records.empty() && !libbpfTakes(section)) {
    std::abort();
  }
  btfd::core::dropRecords(section);
  const auto none = btfd::core::readRecords(section);
  if (!none || !none->records.empty()) {
    std::abort();
  }
  return 0;
}
