#pragma once

#include "base/error.h"

#include <cstddef>
#include <span>
#include <vector>

namespace btfd::check {

/// The most bytes that a compressed file may hold: a kernel with all of its DWARF has a few hundred MiB, its BTF
/// some 5.
inline constexpr std::size_t kMostDecompressed = std::size_t{256} << 20U;

enum class Compression { none, gzip, xz, zstd };

/// How `content` is compressed, by its first bytes.
Compression compressionOf(std::span<const std::byte> content);

/// What `content`, a gzip or xz file, holds: EFBIG if that is more than `most` bytes.
Result<std::vector<std::byte>> decompress(std::span<const std::byte> content, std::size_t most = kMostDecompressed);

} // namespace btfd::check
