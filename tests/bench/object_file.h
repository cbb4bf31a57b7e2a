#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace btfd::bench {

/// The bytes of a BPF object, which can be made to differ without a change of meaning.
class ObjectFile {
 public:
  static Result<ObjectFile> read(const std::filesystem::path& path);

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  /// Writes `number` into bytes of the ELF header that have no meaning (the padding of e_ident, of which the low seven
  /// bytes of `number` have room): the object loads as before, but its digest is another.
  void makeDistinct(std::uint64_t number);

  /// A sealed memfd with the bytes.
  [[nodiscard]] Result<UniqueFd> memfd() const;

 private:
  explicit ObjectFile(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

  std::vector<std::byte> bytes_;
};

} // namespace btfd::bench
