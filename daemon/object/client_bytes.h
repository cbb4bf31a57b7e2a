#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace btfd::object {

/// A client's object file as it was when it was read: bytes that nothing outside this process can change any more, and
/// of whose content nothing is known.
class ClientBytes {
 public:
  /// Takes what is in `file`. A memfd sealed against writing and resizing is mapped, anything else is copied. Errors:
  /// EISDIR, ESPIPE and the like for what is no regular file, EFBIG above `limit` bytes, ENODATA for an empty file.
  /// May block on a file system that does, so it is for workers.
  static Result<ClientBytes> read(BorrowedFd file, std::uint64_t limit);

  ClientBytes(ClientBytes&& other) noexcept;
  ClientBytes& operator=(ClientBytes&& other) noexcept;
  ClientBytes(const ClientBytes&) = delete;
  ClientBytes& operator=(const ClientBytes&) = delete;
  ~ClientBytes();

  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }

  /// Whether the file was mapped, so that it holds these bytes for good; else they were copied.
  [[nodiscard]] bool isMapping() const { return mapping_; }

  /// `part` of bytes(), to be written to. Only this process sees what is written; digest() does too.
  std::span<std::byte> writable(std::span<const std::byte> part) {
    return {data_ + (part.data() - data_), part.size()};
  }

  /// SHA-256 of the bytes, in lower-case hexadecimal.
  [[nodiscard]] std::string digest() const;

 private:
  ClientBytes(std::byte* data, std::size_t size, bool mapping) : data_(data), size_(size), mapping_(mapping) {}

  /// A private mapping: libelf wants memory that it may write to.
  std::byte* data_;
  std::size_t size_;
  bool mapping_;
};

} // namespace btfd::object
