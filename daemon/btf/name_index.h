#pragma once

#include <bpf/btf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace btfd::btf {

/// The part of a type's name that CO-RE compares: what stands before the last "___" that has a character other than
/// an underscore on both sides. "task_struct___v2" and "task_struct" have the same essential name (libbpf's
/// bpf_core_essential_name_len).
std::string_view essentialName(std::string_view name);

/// Type ids by essential name, for one BTF or for what a split BTF adds to its base.
///
/// Replaces the scan over all types that libbpf makes for each name it looks for. Immutable once built, so any number
/// of threads may read it. Refers to the BTF that it was built from, which must outlive it.
class NameIndex {
 public:
  /// An index that finds nothing.
  NameIndex() = default;

  /// Indexes the named types of `btf` with ids from `firstId` on.
  NameIndex(const struct ::btf& btf, std::uint32_t firstId);

  /// Calls `visit(id)` in ascending order for each type with the essential name `name`; stops when it returns false.
  template <typename Visit>
  void forEach(std::string_view name, Visit&& visit) const {
    for (const std::uint32_t id : bucket(name)) {
      if (essentialName(nameOf(id)) == name && !visit(id)) {
        return;
      }
    }
  }

  /// How many names forEach(name) looks at.
  [[nodiscard]] std::size_t compared(std::string_view name) const { return bucket(name).size(); }

  /// The lowest id of a type whose whole name is `name`, with BTF kind `kind`, as libbpf's btf__find_by_name_kind_own
  /// finds it.
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name, std::uint32_t kind) const;

  /// Number of named types.
  [[nodiscard]] std::size_t size() const { return ids_.size(); }

  /// Memory taken, in bytes.
  [[nodiscard]] std::size_t bytes() const { return (ids_.capacity() + bucketEnds_.capacity()) * sizeof(std::uint32_t); }

 private:
  [[nodiscard]] std::span<const std::uint32_t> bucket(std::string_view essential) const;
  [[nodiscard]] std::string_view nameOf(std::uint32_t id) const;

  const struct ::btf* btf_ = nullptr;
  /// Ids grouped by bucket, ascending in each. bucketEnds_[i] is where bucket i ends; its size is a power of two.
  std::vector<std::uint32_t> ids_;
  std::vector<std::uint32_t> bucketEnds_;
};

} // namespace btfd::btf
