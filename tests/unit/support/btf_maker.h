#pragma once

#include "btf/handle.h"

#include <bpf/btf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <linux/btf.h>

namespace btfd::test_support {

using TypeId = std::uint32_t;

/// A member of a struct or union that BtfMaker lays out.
struct Member {
  static constexpr std::uint32_t kNextFree = UINT32_MAX;

  const char* name = "";
  TypeId type = 0;
  /// Width of a bitfield; 0 for what is none.
  std::uint32_t bits = 0;
  /// Offset in bits; by default where a C compiler would put a member that is no bitfield.
  std::uint32_t at = kNextFree;
};

struct Parameter {
  const char* name = "";
  TypeId type = 0;
};

struct Enumerator {
  const char* name = "";
  std::uint64_t value = 0;
};

/// BTF made by hand, a call for each type, which gives its id. What a type refers to is made before it, as in
/// `structure("s", {{"a", pointer(integer())}})`; cycles need an id that next() tells ahead.
class BtfMaker {
 public:
  BtfMaker() : btf_(btf__new_empty()) { btf__set_pointer_size(btf_.get(), 8); }

  /// What a module adds to `base`.
  static BtfMaker splitFrom(const BtfMaker& base) { return BtfMaker(btf__new_empty_split(base.btf_.get())); }

  [[nodiscard]] const struct ::btf& btf() const { return *btf_; }

  [[nodiscard]] struct ::btf* get() const { return btf_.get(); }

  /// The bytes of a .BTF section.
  [[nodiscard]] std::vector<std::byte> bytes() const {
    std::uint32_t size = 0;
    const auto* data = static_cast<const std::byte*>(btf__raw_data(btf_.get(), &size));
    return {data, data + size};
  }

  /// The id that the next type will have, `ahead` types from now.
  [[nodiscard]] TypeId next(std::uint32_t ahead = 0) const { return btf__type_cnt(btf_.get()) + ahead; }

  /// Offset of `text` in the BTF's strings.
  std::uint32_t string(const char* text) { return made(btf__add_str(btf_.get(), text)); }

  TypeId integer(const char* name = "int", std::size_t bytes = 4, int encoding = BTF_INT_SIGNED) {
    return made(btf__add_int(btf_.get(), name, bytes, encoding));
  }

  TypeId unsignedInteger(const char* name = "unsigned int", std::size_t bytes = 4) { return integer(name, bytes, 0); }

  TypeId floating(const char* name = "float", std::size_t bytes = 4) {
    return made(btf__add_float(btf_.get(), name, bytes));
  }

  TypeId pointer(TypeId to = 0) { return made(btf__add_ptr(btf_.get(), static_cast<int>(to))); }

  TypeId array(TypeId element, std::uint32_t count) {
    return made(btf__add_array(btf_.get(), static_cast<int>(element), static_cast<int>(element), count));
  }

  TypeId definedAs(const char* name, TypeId type) {
    return made(btf__add_typedef(btf_.get(), name, static_cast<int>(type)));
  }

  TypeId constant(TypeId type) { return made(btf__add_const(btf_.get(), static_cast<int>(type))); }

  TypeId isVolatile(TypeId type) { return made(btf__add_volatile(btf_.get(), static_cast<int>(type))); }

  TypeId restricted(TypeId type) { return made(btf__add_restrict(btf_.get(), static_cast<int>(type))); }

  TypeId tagged(const char* tag, TypeId type) {
    return made(btf__add_type_tag(btf_.get(), tag, static_cast<int>(type)));
  }

  TypeId forward(const char* name, bool isUnion = false) {
    return made(btf__add_fwd(btf_.get(), name, isUnion ? BTF_FWD_UNION : BTF_FWD_STRUCT));
  }

  /// A struct as a C compiler lays it out, but for bitfields, whose places are given.
  TypeId structure(const char* name, const std::vector<Member>& members) {
    return structure(name, members, sizeOf(members, false));
  }

  TypeId structure(const char* name, const std::vector<Member>& members, std::uint32_t bytes) {
    const TypeId id = made(btf__add_struct(btf_.get(), name, bytes));
    addMembers(members, false);
    return id;
  }

  TypeId unionOf(const char* name, const std::vector<Member>& members) {
    const TypeId id = made(btf__add_union(btf_.get(), name, sizeOf(members, true)));
    addMembers(members, true);
    return id;
  }

  TypeId enumeration(const char* name, const std::vector<Enumerator>& values, bool isSigned = false,
                     std::uint32_t bytes = 4) {
    const TypeId id = made(btf__add_enum(btf_.get(), name, bytes));
    for (const Enumerator& each : values) {
      made(btf__add_enum_value(btf_.get(), each.name, static_cast<std::int32_t>(each.value)));
    }
    setFlag(id, isSigned);
    return id;
  }

  TypeId enumeration64(const char* name, const std::vector<Enumerator>& values, bool isSigned = false) {
    const TypeId id = made(btf__add_enum64(btf_.get(), name, 8, isSigned));
    for (const Enumerator& each : values) {
      made(btf__add_enum64_value(btf_.get(), each.name, each.value));
    }
    return id;
  }

  TypeId prototype(TypeId result, const std::vector<Parameter>& parameters) {
    const TypeId id = made(btf__add_func_proto(btf_.get(), static_cast<int>(result)));
    for (const Parameter& each : parameters) {
      made(btf__add_func_param(btf_.get(), each.name, static_cast<int>(each.type)));
    }
    return id;
  }

  TypeId function(const char* name, TypeId prototype) {
    return made(btf__add_func(btf_.get(), name, BTF_FUNC_GLOBAL, static_cast<int>(prototype)));
  }

  TypeId variable(const char* name, TypeId type) {
    return made(btf__add_var(btf_.get(), name, BTF_VAR_GLOBAL_ALLOCATED, static_cast<int>(type)));
  }

  TypeId declarationTag(const char* tag, TypeId type) {
    return made(btf__add_decl_tag(btf_.get(), tag, static_cast<int>(type), -1));
  }

  /// The type itself, to write into it what no function of libbpf would.
  [[nodiscard]] struct btf_type& type(TypeId id) const {
    return *const_cast<struct btf_type*>(btf__type_by_id(btf_.get(), id)); // NOLINT: made here, so it may be changed
  }

  /// Sets kind_flag: signed for enums.
  void setFlag(TypeId id, bool set) const {
    constexpr std::uint32_t kFlag = 1U << 31U;
    type(id).info = set ? type(id).info | kFlag : type(id).info & ~kFlag;
  }

 private:
  explicit BtfMaker(struct ::btf* btf) : btf_(btf) {}

  static std::uint32_t made(int result) {
    if (result < 0) {
      throw std::runtime_error("libbpf does not make this type: error " + std::to_string(result));
    }
    return static_cast<std::uint32_t>(result);
  }

  [[nodiscard]] std::uint32_t size(TypeId id) const {
    const auto bytes = btf__resolve_size(btf_.get(), id);
    return bytes < 0 ? 0 : static_cast<std::uint32_t>(bytes);
  }

  [[nodiscard]] std::uint32_t alignment(TypeId id) const {
    const int bytes = btf__align_of(btf_.get(), id);
    return bytes <= 0 ? 1 : static_cast<std::uint32_t>(bytes);
  }

  /// Offset in bits of `member`, where the members before it end at `end` bytes.
  [[nodiscard]] std::uint32_t place(const Member& member, std::uint32_t end, bool isUnion) const {
    if (member.at != Member::kNextFree) {
      return member.at;
    }
    const std::uint32_t align = alignment(member.type);
    return isUnion ? 0 : (end + align - 1) / align * align * 8;
  }

  [[nodiscard]] std::uint32_t endOf(const Member& member, std::uint32_t place) const {
    return (place + (member.bits != 0 ? member.bits : size(member.type) * 8) + 7) / 8;
  }

  [[nodiscard]] std::uint32_t sizeOf(const std::vector<Member>& members, bool isUnion) const {
    std::uint32_t end = 0;
    std::uint32_t align = 1;
    for (const Member& each : members) {
      align = std::max(align, alignment(each.type));
      end = std::max(end, endOf(each, place(each, end, isUnion)));
    }
    return (end + align - 1) / align * align;
  }

  void addMembers(const std::vector<Member>& members, bool isUnion) {
    std::uint32_t end = 0;
    for (const Member& each : members) {
      const std::uint32_t at = place(each, end, isUnion);
      end = std::max(end, endOf(each, at));
      made(btf__add_field(btf_.get(), each.name, static_cast<int>(each.type), at, each.bits));
    }
  }

  btf::BtfHandle btf_;
};

} // namespace btfd::test_support
