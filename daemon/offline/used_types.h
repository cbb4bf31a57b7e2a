#pragma once

#include "base/error.h"
#include "btf_writer.h"
#include "core/candidates.h"
#include "core/usage.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <vector>

namespace btfd::offline {

/// The types of a kernel and its modules that relocations have used, to be written as one BTF. Refers to both.
class UsedTypes {
 public:
  /// `usages`: one for each of `kernel`'s targets.
  UsedTypes(const core::Targets& kernel, std::span<const core::Usage> usages);

  /// BTF with these types, in the kernel's byte order. Of structs, unions and enums it has only the members that are
  /// used; what a pointer leads to is void unless that is used, too. An error if types of two modules would have to
  /// have the same id.
  Result<std::vector<std::byte>> write();

  [[nodiscard]] std::size_t count() const { return found_.size(); }

  /// How many types without a meaning keep others at their ids.
  [[nodiscard]] std::size_t fillers() const { return fillers_; }

 private:
  /// A type of the kernel itself, target 0, or of a module.
  struct Key {
    std::uint32_t target = 0;
    core::TypeId id = 0;

    auto operator<=>(const Key&) const = default;
  };

  /// Gives the id to write for a type that is referred to.
  using Refer = std::function<core::TypeId(core::TypeId)>;

  void find();
  Result<void> number();
  /// Writes one type, without members that are not used.
  void copy(const Key& key, BtfWriter& writer, const Refer& refer) const;
  void copyMembers(const Key& key, const struct btf_type& type, BtfWriter& writer, const Refer& refer) const;
  void copyRest(const Key& key, const struct btf_type& type, BtfWriter& writer, const Refer& refer) const;
  [[nodiscard]] core::TypeId newId(const Key& key) const;
  [[nodiscard]] Key keyOf(std::uint32_t target, core::TypeId id) const;

  [[nodiscard]] bool isUsed(const Key& key) const { return usages_[key.target].find(key.id) != nullptr; }

  [[nodiscard]] std::vector<std::uint32_t> membersOf(const Key& key, const struct btf_type& type) const;

  const core::Targets& kernel_;
  std::span<const core::Usage> usages_;
  /// In the order in which they are written: the kernel's own first, each BTF's by their ids.
  std::set<Key> found_;
  std::map<Key, core::TypeId> newIds_;
  std::map<core::TypeId, Key> byNewId_;
  std::size_t fillers_ = 0;
};

} // namespace btfd::offline
