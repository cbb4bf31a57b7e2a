#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace btfd::check {

/// The BTF that a file holds, nothing of it checked.
struct BtfBytes {
  std::vector<std::byte> btf;
  /// For a module built on its own: what it needs of its kernel's BTF (section .BTF.base), to be matched with the one
  /// that the kernel really has.
  std::vector<std::byte> distilledBase;
};

/// Reads the BTF in the file at `path`: raw, as in /sys/kernel/btf, or section .BTF of an ELF file, such as vmlinux or
/// a module; each of them also compressed with gzip or xz.
Result<BtfBytes> readBtf(const std::string& path);

/// The same of a file that whoever gave it may still change: it is read once. Error code EFBIG: it, or what is
/// compressed in it, has more than `limit` bytes. The message goes on from the file's name: "is empty".
Result<BtfBytes> readBtf(BorrowedFd file, std::size_t limit);

/// Whether the file at `path` begins as raw BTF does, of whatever byte order.
bool looksLikeBtf(const std::string& path);

/// Whether `bytes` only add to the BTF of another, its base, as those of a module do.
bool isOfModule(const BtfBytes& bytes);

} // namespace btfd::check
