#pragma once

#include "btf/handle.h"
#include "checked_image.h"
#include "core/engine.h"

#include <optional>
#include <string_view>
#include <vector>

namespace btfd::object {

/// Parses what is in `section`, an object's .BTF. The error says what is wrong with it.
Result<btf::BtfHandle> parseObjectBtf(const Section& section);

/// The CO-RE side of an object: its BTF, its records, and where in the image they apply.
class CoreRecords {
 public:
  /// Reads .BTF and .BTF.ext of `image`. What is corrupt in them is an error; an object without them has no records.
  static Result<CoreRecords> read(const CheckedImage& image);

  /// Whether anything is asked about the kernel, so that a spec is needed.
  [[nodiscard]] bool needKernel() const { return records_.needKernel(); }

  [[nodiscard]] bool empty() const { return records_.records.empty(); }

  /// What core::restoreRecords needs.
  [[nodiscard]] std::uint32_t length() const { return records_.length; }

  [[nodiscard]] std::size_t size() const { return records_.records.size(); }

  /// Resolves the records against `targets` and writes the results into `image`, which is a copy of the image.
  std::vector<core::Relocation> resolve(std::span<std::byte> image, const core::Targets& targets) const;

  /// Resolves the records against `targets`, writes the results into `bytes`, from which the image was made, and takes
  /// the records out of it, so that libbpf finds none.
  std::vector<core::Relocation> relocate(ClientBytes& bytes, const core::Targets& targets) const;

  /// Takes the records out of the image without applying them, for programs that are not to be loaded.
  void drop(ClientBytes& bytes) const;

  /// Takes the records out of `image`, which is a copy of the image.
  void drop(std::span<std::byte> image) const;

  /// Makes the instruction of `relocation`, in `image`, which is a copy of the image, one that no verifier lets pass.
  /// One that is not there stays so.
  void poison(std::span<std::byte> image, const core::Relocation& relocation) const;

  [[nodiscard]] core::Types types() const { return core::Types::ofObject(*btf_); }

  /// The function that `relocation`'s instruction lies in; empty if there is none.
  [[nodiscard]] std::string_view functionOf(const core::Relocation& relocation) const;

  /// Number of the instruction within that function.
  [[nodiscard]] std::uint32_t instructionOf(const core::Relocation& relocation) const;

  /// Its section's number in the section table and the instruction's number in that section.
  [[nodiscard]] std::pair<std::size_t, std::size_t> placeOf(const core::Relocation& relocation) const;

  /// Whether the relocation's section is `.text`, whose functions belong to any program that calls them.
  [[nodiscard]] bool isShared(const core::Relocation& relocation) const;

 private:
  std::span<const std::byte> image_;
  btf::BtfHandle btf_;
  core::Records records_;
  std::span<const std::byte> extension_;
  /// For each of records_.sections.
  std::vector<Section> sections_;
  std::vector<std::size_t> indexes_;
  std::vector<Function> functions_;

  void findSections(const CheckedImage& image);
  /// What stands in `image`, a copy of the image, where `part` stands in the image; nothing if that is empty.
  [[nodiscard]] std::span<std::byte> inCopy(std::span<std::byte> image, std::span<const std::byte> part) const;
  [[nodiscard]] const Function* find(const core::Relocation& relocation) const;
};

} // namespace btfd::object
