#pragma once

#include <bpf/btf.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace btfd::offline {

/// Writes BTF, type by type, as Documentation/bpf/btf.rst has it, in this machine's byte order. Unlike libbpf's
/// btf__add_* it takes types as they are, flags and old encodings included.
class BtfWriter {
 public:
  /// Begins the next type: a copy of `type` with this name and so many members or the like, which have to follow.
  /// `typeOrSize` is what its union of these holds.
  void begin(const struct btf_type& type, std::string_view name, std::uint32_t members, std::uint32_t typeOrSize);

  /// A type that nobody asks for, so that the next one has a higher id: it has no name.
  void filler();

  /// What follows a type: numbers, type ids, and offsets of strings.
  void add(std::uint32_t word) { words_.push_back(word); }

  /// Offset of `text`, for add().
  std::uint32_t string(std::string_view text);

  /// All of the BTF.
  [[nodiscard]] std::vector<std::byte> bytes() const;

 private:
  std::vector<std::uint32_t> words_;
  /// The first string is the empty one.
  std::string strings_ = std::string(1, '\0');
  std::unordered_map<std::string, std::uint32_t> offsets_;
};

} // namespace btfd::offline
