#pragma once

#include "base/error.h"
#include "relocation.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace btfd::core {

/// The CO-RE records of a .BTF.ext section.
struct Records {
  /// For each section with records: its name's offset in the BTF's strings.
  std::vector<std::uint32_t> sections;
  /// In the order in which they are applied.
  std::vector<Record> records;
  /// Whether the section is in the other byte order than this machine's.
  bool foreign = false;
  /// The field core_relo_len of the section's header as it stands there.
  std::uint32_t length = 0;

  /// Whether any of them asks about the kernel, rather than about the object itself.
  [[nodiscard]] bool needKernel() const;
};

/// Reads the CO-RE records of .BTF.ext. All of the section is checked as libbpf checks it, but what libbpf then ignores
/// as a whole, and so loads unrelocated code, is an error here.
Result<Records> readRecords(std::span<const std::byte> section);

/// Makes `section`, which readRecords has read, one without CO-RE records.
void dropRecords(std::span<std::byte> section);

/// Undoes what dropRecords has done to `section`. `length` is Records::length of what had been read.
void restoreRecords(std::span<std::byte> section, std::uint32_t length);

} // namespace btfd::core
