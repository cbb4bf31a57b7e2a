#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "client_bytes.h"
#include "core/relocation.h"
#include "relocate_image.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace btfd::object {

/// What was done to an object.
struct Relocated {
  std::vector<core::Relocation> relocations;
  /// CoreRecords::length of the object.
  std::uint32_t recordsLength = 0;
  /// The generation of the spec whose types `relocations` name, or one of the two below.
  std::uint64_t generation = 0;

  /// Nothing was asked about the kernel.
  static constexpr std::uint64_t kOfAnyKernel = 0;
  /// The request came with BTF of its own, which is gone.
  static constexpr std::uint64_t kOfOtherBtf = ~std::uint64_t{0};
};

/// A client's object whose CO-RE relocations have been applied, in a sealed memfd: what the front keeps of it, to
/// attach programs later, to tell what became of the relocations, and so that the same object need not be checked and
/// relocated for the same kernel again.
///
/// The object file comes first, and behind it a struct Relocated, as it is in memory: only processes that are forked
/// from one another exchange it.
class KeptImage {
 public:
  /// A memfd with `bytes` and what was done to them.
  static Result<UniqueFd> make(const ClientBytes& bytes, const Relocated& relocated);

  /// Maps what `make` has made. The error is about the system, or a bug: the memfd is none of a client's.
  static Result<KeptImage> open(BorrowedFd memfd);

  /// Maps an object file, in a sealed memfd, that had no CO-RE records to begin with.
  static Result<KeptImage> ofFile(BorrowedFd memfd);

  /// The object file, relocated, without CO-RE records.
  [[nodiscard]] std::span<const std::byte> object() const { return bytes_.bytes().first(objectBytes_); }

  /// Relocated::generation of one that `make` has made.
  [[nodiscard]] std::uint64_t generation() const;

  /// What was done to one that `make` has made; copied from the memfd.
  [[nodiscard]] Relocated relocated() const;

  /// The object's CO-RE records, which `relocated().relocations` are about: puts them back into the mapping, which
  /// libbpf must not be given any more then. Refers to the mapping.
  Result<CoreRecords> restoreRecords();

 private:
  KeptImage(ClientBytes bytes, std::size_t objectBytes) : bytes_(std::move(bytes)), objectBytes_(objectBytes) {}

  ClientBytes bytes_;
  std::size_t objectBytes_;
};

} // namespace btfd::object
