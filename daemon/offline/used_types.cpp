#include "used_types.h"

#include "btf/handle.h"

#include <bpf/btf.h>

#include <cerrno>
#include <utility>

#include <linux/btf.h>

namespace btfd::offline {

namespace {

/// Whether the third word of a type is the id of another one.
bool refersToOne(const struct btf_type& type) {
  switch (btf_kind(&type)) {
  case BTF_KIND_PTR:
  case BTF_KIND_TYPEDEF:
  case BTF_KIND_VOLATILE:
  case BTF_KIND_CONST:
  case BTF_KIND_RESTRICT:
  case BTF_KIND_TYPE_TAG:
  case BTF_KIND_FUNC:
  case BTF_KIND_FUNC_PROTO:
  case BTF_KIND_VAR:
  case BTF_KIND_DECL_TAG:
    return true;
  default:
    return false;
  }
}

} // namespace

UsedTypes::UsedTypes(const core::Targets& kernel, std::span<const core::Usage> usages)
    : kernel_(kernel), usages_(usages) {
  find();
}

UsedTypes::Key UsedTypes::keyOf(std::uint32_t target, core::TypeId id) const {
  return {.target = id < kernel_[0].types.count() ? 0 : target, .id = id};
}

/// Finds what can be reached from candidates: what was looked at in vain on the way is not.
void UsedTypes::find() {
  std::vector<Key> left;
  const auto reach = [&](const Key& key) {
    if (key.id != 0 && found_.insert(key).second) {
      left.push_back(key);
    }
  };
  for (std::uint32_t target = 0; target < usages_.size(); ++target) {
    for (const auto& [id, usage] : usages_[target].types()) {
      if (usage.isCandidate) {
        reach(keyOf(target, id));
      }
    }
  }
  if (const auto found = core::Types::findLong(kernel_[0].types.btf()); found && !found_.empty()) {
    reach({.target = 0, .id = *found}); // tells how large pointers are
  }
  while (!left.empty()) {
    const Key key = left.back();
    left.pop_back();
    BtfWriter unused;
    copy(key, unused, [&](core::TypeId id) {
      reach(keyOf(key.target, id));
      return id;
    });
  }
}

/// Types whose ids are asked for keep them; the others fill the room between.
Result<void> UsedTypes::number() {
  for (const Key& key : found_) {
    const core::Usage::Type* usage = usages_[key.target].find(key.id);
    if (usage == nullptr || !usage->isIdWanted) {
      continue;
    }
    const auto [at, isNew] = byNewId_.emplace(key.id, key);
    if (!isNew) {
      return fail("types of two modules, " + std::string(kernel_[at->second.target].name) + " and " +
                      std::string(kernel_[key.target].name) +
                      ", have the same id, and objects ask for both ids: one BTF cannot have both",
                  ENOTSUP);
    }
    newIds_.emplace(key, key.id);
  }
  core::TypeId next = 1;
  for (const Key& key : found_) {
    if (newIds_.contains(key)) {
      continue;
    }
    while (byNewId_.contains(next)) {
      ++next;
    }
    newIds_.emplace(key, next);
    byNewId_.emplace(next, key);
  }
  fillers_ = byNewId_.empty() ? 0 : byNewId_.rbegin()->first - byNewId_.size();
  return {};
}

core::TypeId UsedTypes::newId(const Key& key) const {
  return key.id == 0 ? 0 : newIds_.at(key);
}

Result<std::vector<std::byte>> UsedTypes::write() {
  if (auto numbered = number(); !numbered) {
    return std::unexpected(std::move(numbered.error()));
  }
  BtfWriter writer;
  core::TypeId next = 1;
  for (const auto& [id, key] : byNewId_) {
    for (; next < id; ++next) {
      writer.filler();
    }
    copy(key, writer, [&, target = key.target](core::TypeId referred) { return newId(keyOf(target, referred)); });
    ++next;
  }
  const auto bytes = writer.bytes();
  const btf::BtfHandle btf(btf__new(bytes.data(), static_cast<std::uint32_t>(bytes.size())));
  if (!btf) {
    return failErrno("the kernel's BTF has types that cannot be written", errno);
  }
  const auto order = kernel_[0].types.isBigEndian() ? BTF_BIG_ENDIAN : BTF_LITTLE_ENDIAN;
  std::uint32_t size = 0;
  const void* data = btf__set_endianness(btf.get(), order) == 0 ? btf__raw_data(btf.get(), &size) : nullptr;
  if (data == nullptr) {
    return failErrno("the BTF cannot be written in the kernel's byte order", errno);
  }
  const auto* begin = static_cast<const std::byte*>(data);
  return std::vector<std::byte>(begin, begin + size);
}

std::vector<std::uint32_t> UsedTypes::membersOf(const Key& key, const struct btf_type& type) const {
  std::vector<std::uint32_t> members;
  const core::Usage::Type* usage = usages_[key.target].find(key.id);
  for (std::uint32_t index = 0; usage != nullptr && index < btf_vlen(&type); ++index) {
    if (usage->uses(index)) {
      members.push_back(index);
    }
  }
  return members;
}

void UsedTypes::copy(const Key& key, BtfWriter& writer, const Refer& refer) const {
  const core::Types& types = kernel_[key.target].types;
  const struct btf_type& type = *types.find(key.id);
  const char* name = types.string(type.name_off);
  if (btf_is_composite(&type) || btf_is_any_enum(&type)) {
    writer.begin(type, name, static_cast<std::uint32_t>(membersOf(key, type).size()), type.size);
    copyMembers(key, type, writer, refer);
    return;
  }
  const bool isCut = btf_is_ptr(&type) && !isUsed(keyOf(key.target, type.type));
  const std::uint32_t typeOrSize = !refersToOne(type) ? type.size : isCut ? 0 : refer(type.type);
  writer.begin(type, name, btf_is_datasec(&type) ? 0 : btf_vlen(&type), typeOrSize);
  copyRest(key, type, writer, refer);
}

void UsedTypes::copyMembers(const Key& key, const struct btf_type& type, BtfWriter& writer, const Refer& refer) const {
  const core::Types& types = kernel_[key.target].types;
  for (const std::uint32_t index : membersOf(key, type)) {
    if (btf_is_composite(&type)) {
      const struct btf_member& member = btf_members(&type)[index];
      writer.add(writer.string(types.string(member.name_off)));
      writer.add(refer(member.type));
      writer.add(member.offset);
    } else if (btf_is_enum(&type)) {
      const struct btf_enum& enumerator = btf_enum(&type)[index];
      writer.add(writer.string(types.string(enumerator.name_off)));
      writer.add(static_cast<std::uint32_t>(enumerator.val));
    } else {
      const struct btf_enum64& enumerator = btf_enum64(&type)[index];
      writer.add(writer.string(types.string(enumerator.name_off)));
      writer.add(enumerator.val_lo32);
      writer.add(enumerator.val_hi32);
    }
  }
}

/// What follows types that have no members.
void UsedTypes::copyRest(const Key& key, const struct btf_type& type, BtfWriter& writer, const Refer& refer) const {
  const core::Types& types = kernel_[key.target].types;
  switch (btf_kind(&type)) {
  case BTF_KIND_INT: {
    const auto& encoding = *reinterpret_cast<const std::uint32_t*>(&type + 1); // NOLINT: as btf.h has it
    writer.add(encoding);
    break;
  }
  case BTF_KIND_ARRAY: {
    const struct btf_array& array = *btf_array(&type);
    writer.add(refer(array.type));
    writer.add(refer(array.index_type));
    writer.add(array.nelems);
    break;
  }
  case BTF_KIND_FUNC_PROTO:
    for (std::uint32_t index = 0; index < btf_vlen(&type); ++index) {
      const struct btf_param& parameter = btf_params(&type)[index];
      writer.add(writer.string(types.string(parameter.name_off)));
      writer.add(refer(parameter.type));
    }
    break;
  case BTF_KIND_VAR:
    writer.add(btf_var(&type)->linkage);
    break;
  case BTF_KIND_DECL_TAG:
    writer.add(static_cast<std::uint32_t>(btf_decl_tag(&type)->component_idx));
    break;
  default:
    break;
  }
}

} // namespace btfd::offline
