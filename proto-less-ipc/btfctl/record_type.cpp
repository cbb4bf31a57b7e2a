#include "btfctl/record_type.h"

#include "base/read_file.h"
#include "base/text.h"
#include "btfctl/text.h"
#include "object/json_value.h"

#include <array>
#include <cerrno>
#include <limits>
#include <string_view>
#include <vector>

namespace btfd::btfctl {
namespace {

std::string_view nameOf(const struct ::btf& btf, const struct btf_type& type) {
  const char* name = btf__name_by_offset(&btf, type.name_off);
  return name == nullptr ? "" : name;
}

} // namespace

Result<RecordType> RecordType::find(BorrowedFd btf, const std::string& map, const std::string& type) {
  constexpr std::size_t kLargest = std::size_t{64} << 20; // the daemon takes no larger object, unless it is told to
  auto bytes = readAll(btf, kLargest);
  if (!bytes) {
    return fail("the object's BTF " + bytes.error().message, bytes.error().code);
  }
  RecordType record;
  record.btf_.reset(btf__new(bytes->data(), static_cast<__u32>(bytes->size())));
  if (!record.btf_) {
    return failErrno("the object's BTF cannot be read", errno);
  }
  if (type.empty()) {
    record.type_ = record.declaredBy(map);
    return record;
  }
  record.type_ = record.named(type);
  if (record.type_ == 0) {
    std::vector<std::string> known;
    for (std::uint32_t id = 1; id < btf__type_cnt(record.btf_.get()); ++id) {
      known.emplace_back(nameOf(*record.btf_, *btf__type_by_id(record.btf_.get(), id)));
    }
    return fail("the object's BTF has no type '" + type + "'" + didYouMean(type, known));
  }
  return record;
}

nlohmann::json RecordType::read(std::span<const std::byte> record) const {
  const std::uint32_t type = type_ == 0 ? onlyOfSize(record.size()) : type_;
  auto value = type == 0 ? std::nullopt : object::readValue(*btf_, type, record);
  return value ? std::move(*value) : nlohmann::json(toHex(record));
}

std::uint32_t RecordType::named(const std::string& type) const {
  std::string_view name = type;
  for (const std::string_view keyword : {"struct ", "union ", "enum "}) {
    name.remove_prefix(name.starts_with(keyword) ? keyword.size() : 0);
  }
  constexpr std::array<__u32, 6> kKinds{BTF_KIND_STRUCT, BTF_KIND_TYPEDEF, BTF_KIND_UNION,
                                        BTF_KIND_INT,    BTF_KIND_ENUM,    BTF_KIND_ENUM64};
  for (const __u32 kind : kKinds) {
    if (const __s32 id = btf__find_by_name_kind(btf_.get(), std::string(name).c_str(), kind); id > 0) {
      return static_cast<std::uint32_t>(id);
    }
  }
  return 0;
}

/// The type that the map's definition in section .maps has for its values: `__type(value, struct event)` declares a
/// member that is a pointer to it.
std::uint32_t RecordType::declaredBy(const std::string& map) const {
  const __s32 variable = btf__find_by_name_kind(btf_.get(), map.c_str(), BTF_KIND_VAR);
  const auto* type = variable > 0 ? btf__type_by_id(btf_.get(), static_cast<std::uint32_t>(variable)) : nullptr;
  const int definition = type == nullptr ? -1 : btf__resolve_type(btf_.get(), type->type);
  type = definition > 0 ? btf__type_by_id(btf_.get(), static_cast<std::uint32_t>(definition)) : nullptr;
  if (type == nullptr || !btf_is_struct(type)) {
    return 0;
  }
  for (std::uint16_t i = 0; i < btf_vlen(type); ++i) {
    const char* name = btf__name_by_offset(btf_.get(), btf_members(type)[i].name_off);
    const auto* pointer = btf__type_by_id(btf_.get(), btf_members(type)[i].type);
    if (name != nullptr && std::string_view(name) == "value" && pointer != nullptr && btf_is_ptr(pointer)) {
      return pointer->type;
    }
  }
  return 0;
}

std::uint32_t RecordType::onlyOfSize(std::size_t size) const {
  std::uint32_t found = 0;
  for (std::uint32_t id = 1; id < btf__type_cnt(btf_.get()); ++id) {
    const struct btf_type& type = *btf__type_by_id(btf_.get(), id);
    // A map's definition is a struct, too, without a name.
    if (!btf_is_struct(&type) || type.size != size || nameOf(*btf_, type).empty()) {
      continue;
    }
    if (found != 0) {
      return 0;
    }
    found = id;
  }
  return found;
}

} // namespace btfd::btfctl
