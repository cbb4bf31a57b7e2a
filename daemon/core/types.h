#pragma once

#include "fault.h"
#include "usage.h"
#include "work.h"

#include <bpf/btf.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace btfd::core {

using TypeId = std::uint32_t;

/// The most typedefs and modifiers in a row that are followed, and levels of arrays. The kernel itself takes no BTF
/// with more than 32 (MAX_RESOLVE_DEPTH of kernel/bpf/btf.c); more is a cycle or an attack.
inline constexpr unsigned kMaximumChain = 128;

/// A type behind its typedefs and modifiers.
struct Stripped {
  TypeId id = 0;
  const struct btf_type* type = nullptr;
};

/// The types of one BTF, to be read in place. Refers to the BTF, which must outlive it and which libbpf has checked
/// when it parsed it (btf_sanity_check): type ids and string offsets lie within it. Nothing else is taken for granted.
class Types {
 public:
  /// `pointerSize` in bytes.
  Types(const struct ::btf& btf, std::uint32_t pointerSize) : btf_(&btf), pointerSize_(pointerSize) {}

  /// Types of a BPF object, whose pointers always have 8 bytes.
  static Types ofObject(const struct ::btf& btf) { return {btf, 8}; }

  /// Types of a kernel, whose pointers are as large as its `long`.
  static Types ofKernel(const struct ::btf& btf);

  /// The integer type that tells the size of pointers in a kernel's BTF, if it has one.
  static std::optional<TypeId> findLong(const struct ::btf& btf);

  /// The same types, whose walks are paid for with `work`, which must outlive the result. Without one they are free.
  [[nodiscard]] Types paidWith(Work& work) const {
    Types types = *this;
    types.work_ = &work;
    return types;
  }

  /// The same types, for which is noted in `usage`, which must outlive the result, what is looked at. Without one
  /// nothing is.
  [[nodiscard]] Types notedIn(Usage& usage) const {
    Types types = *this;
    types.usage_ = &usage;
    return types;
  }

  /// Notes that the type is looked at, as strip does.
  void use(TypeId id) const {
    if (usage_ != nullptr) {
      usage_->use(id);
    }
  }

  /// Notes that it is one of those that a relocation chooses from.
  void useAsCandidate(TypeId id) const {
    if (usage_ != nullptr) {
      usage_->use(id).isCandidate = true;
    }
  }

  /// Notes that its id is an answer.
  void useId(TypeId id) const {
    if (usage_ != nullptr) {
      usage_->use(id).isIdWanted = true;
    }
  }

  /// Notes that member or enumerator `index` of the type is looked at.
  void useMember(TypeId id, std::uint32_t index) const {
    if (usage_ != nullptr) {
      usage_->use(id).members.insert(index);
    }
  }

  /// Notes that all of its members or enumerators are.
  void useAllMembers(TypeId id) const {
    if (usage_ != nullptr) {
      usage_->use(id).areAllMembersUsed = true;
    }
  }

  /// The type, or null if there is none. 0 is void.
  [[nodiscard]] const struct btf_type* find(TypeId id) const { return btf__type_by_id(btf_, id); }

  /// The string at `offset`, empty if there is none. Ends with NUL and lives as long as the BTF.
  [[nodiscard]] const char* string(std::uint32_t offset) const {
    const char* text = btf__name_by_offset(btf_, offset);
    return text == nullptr ? "" : text;
  }

  /// Pays for looking at so many bytes of names. Most are too short to count beside the step that they belong to.
  [[nodiscard]] bool payForNames(std::size_t bytes) const {
    constexpr std::size_t kBytesPerStep = 16;
    return work_ == nullptr || bytes < kBytesPerStep || work_->spend(bytes / kBytesPerStep);
  }

  /// Type `id` without typedefs, const, volatile, restrict and type tags.
  [[nodiscard]] Expected<Stripped> strip(TypeId id) const;

  /// Type `id` as strip gives it and, of arrays of whatever dimension, the element's.
  [[nodiscard]] Expected<Stripped> element(TypeId id) const;

  /// Size of type `id` in bytes (libbpf's btf__resolve_size).
  [[nodiscard]] Expected<std::uint64_t> size(TypeId id) const;

  [[nodiscard]] bool isBigEndian() const { return btf__endianness(btf_) == BTF_BIG_ENDIAN; }

  [[nodiscard]] std::uint32_t pointerSize() const { return pointerSize_; }

  [[nodiscard]] TypeId count() const { return btf__type_cnt(btf_); }

  [[nodiscard]] const struct ::btf& btf() const { return *btf_; }

 private:
  const struct ::btf* btf_;
  std::uint32_t pointerSize_;
  Work* work_ = nullptr;
  Usage* usage_ = nullptr;
};

/// Whether two types are of one kind for CO-RE: that of an enum does not depend on its width.
inline bool sameKind(const struct btf_type& left, const struct btf_type& right) {
  return btf_kind(&left) == btf_kind(&right) || (btf_is_any_enum(&left) && btf_is_any_enum(&right));
}

/// The name of enumerator `index`, as an offset for Types::string.
inline std::uint32_t enumeratorName(const struct btf_type& type, std::uint32_t index) {
  return btf_is_enum(&type) ? btf_enum(&type)[index].name_off : btf_enum64(&type)[index].name_off;
}

} // namespace btfd::core
