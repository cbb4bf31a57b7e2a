#pragma once

#include "base/error.h"
#include "handle.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace btfd::btf {

/// What the types of one kind have behind the bytes that all types have: so many bytes, and so many more for each of
/// the elements that the type counts (struct btf_layout of Linux 7.1's uapi/linux/btf.h).
struct KindLayout {
  std::uint8_t fixed = 0;
  std::uint8_t element = 0;
};

/// For each kind, by its number, how to skip it. A module's BTF may leave it to the kernel's.
using KindLayouts = std::vector<KindLayout>;

struct ParsedBtf {
  BtfHandle btf;
  KindLayouts layouts;
};

/// Parses raw BTF of either byte order with libbpf. Linux 7.1 and later write BTF that says how to skip what a reader
/// does not know, which libbpf before 1.8 takes for damage: types of a kind unknown here then stand as types of which
/// nothing is known, so that all others keep their ids. The error says what cannot be read.
///
/// With a `base`, what a split BTF adds to it; `layouts` are the base's.
Result<ParsedBtf> parseBtf(std::span<const std::byte> bytes, struct ::btf* base = nullptr,
                           const KindLayouts& layouts = {});

/// The same BTF as libbpf reads it; nothing if it reads `bytes` as they are.
Result<std::optional<std::vector<std::byte>>> readableBtf(std::span<const std::byte> bytes, KindLayouts& layouts);

} // namespace btfd::btf
