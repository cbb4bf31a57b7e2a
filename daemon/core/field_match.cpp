#include "field_match.h"

#include "btf/name_index.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace btfd::core {

std::nullopt_t FieldMatcher::mismatch(Mismatch::Reason reason, TypeId type) {
  mismatch_.reason = reason;
  mismatch_.type = type;
  return std::nullopt;
}

Expected<std::optional<Place>> FieldMatcher::matchField(const LocalAccess& access, const Types& target, TypeId root) {
  Walk walk{.target = target, .place = {}, .at = root};
  mismatch_ = {};
  for (const Accessor& accessor : access.accessors()) {
    const auto stripped = target.strip(walk.at);
    if (!stripped) {
      return std::unexpected(stripped.error());
    }
    walk.at = stripped->id;
    Expected<bool> found = false;
    if (accessor.name == nullptr) {
      found = stepIntoElement(walk, accessor, mismatch_.accessor == 0);
    } else {
      searched_.clear();
      mismatch(btf_is_composite(stripped->type) ? Mismatch::Reason::noSuchMember : Mismatch::Reason::notAStruct,
               walk.at);
      found = findMember(walk, accessor, walk.at);
    }
    if (!found) {
      return std::unexpected(found.error());
    }
    if (!*found) {
      return std::nullopt;
    }
    ++mismatch_.accessor;
  }
  return walk.place;
}

Expected<bool> FieldMatcher::stepIntoElement(Walk& walk, const Accessor& accessor, bool isFirst) {
  // The first index is one of the pointer to the root: there is no array to look at.
  if (!isFirst) {
    const struct btf_type& type = *walk.target.find(walk.at);
    if (!btf_is_array(&type)) {
      mismatch(Mismatch::Reason::notAnArray, walk.at);
      return false;
    }
    const struct btf_array& array = *btf_array(&type);
    if (accessor.index >= array.nelems && !isFlexibleArray(walk.target, walk.place.last, array)) {
      mismatch(Mismatch::Reason::indexOutOfBounds, walk.at);
      return false;
    }
    const auto element = walk.target.strip(array.type);
    if (!element) {
      return std::unexpected(element.error());
    }
    walk.at = element->id;
  }
  if (++walk.steps > kMaximumAccessors) {
    return std::unexpected(Fault::nestedTooDeep);
  }
  walk.place.last = {.type = walk.at, .index = accessor.index, .name = nullptr};
  if (auto added = addElements(walk.target, walk.at, accessor.index, walk.place.bitOffset); !added) {
    return std::unexpected(added.error());
  }
  return true;
}

/// Looks for the member in `composite` and, in their order, the anonymous ones within it (libbpf's
/// bpf_core_match_member).
Expected<bool> FieldMatcher::findMember(Walk& walk, const Accessor& accessor, TypeId composite) {
  const auto stripped = walk.target.strip(composite);
  if (!stripped) {
    return std::unexpected(stripped.error());
  }
  if (!btf_is_composite(stripped->type)) {
    return false;
  }
  const std::uint32_t count = btf_vlen(stripped->type);
  if (!work_.spend(count + 1) || (count > 0 && !object_.payForNames(std::strlen(accessor.name) * count))) {
    return std::unexpected(Fault::tooMuchWork);
  }
  if (count > 0 && walk.steps >= kMaximumAccessors) {
    return std::unexpected(Fault::nestedTooDeep);
  }
  const struct btf_member* members = btf_members(stripped->type);
  for (std::uint32_t index = 0; index < count; ++index) {
    const char* name = walk.target.string(members[index].name_off);
    if (*name == '\0') {
      if (auto found = findBehind(walk, accessor, *stripped, index); !found || *found) {
        return found;
      }
      continue;
    }
    if (std::strcmp(name, accessor.name) != 0) {
      continue;
    }
    walk.target.useMember(stripped->id, index);
    const struct btf_member& local = btf_members(object_.find(accessor.type))[accessor.index];
    const auto fits = compatible(local.type, walk.target, members[index].type);
    if (!fits) {
      return fits;
    }
    if (!*fits) {
      mismatch(Mismatch::Reason::incompatibleMember, members[index].type);
      return false;
    }
    ++walk.steps;
    walk.place.last = {.type = stripped->id, .index = index, .name = name};
    walk.at = members[index].type;
    if (auto added = addBits(btf_member_bit_offset(stripped->type, index), walk.place.bitOffset); !added) {
      return std::unexpected(added.error());
    }
    return true;
  }
  return false;
}

/// Looks into anonymous member `index`.
Expected<bool> FieldMatcher::findBehind(Walk& walk, const Accessor& accessor, const Stripped& composite,
                                        std::uint32_t index) {
  const TypeId type = btf_members(composite.type)[index].type;
  // What was searched in vain stays in vain: else n levels with two anonymous members each take 2^n steps.
  if (!work_.spend(searched_.size())) {
    return std::unexpected(Fault::tooMuchWork);
  }
  if (std::ranges::find(searched_, type) != searched_.end()) {
    return false;
  }
  const std::uint64_t before = walk.place.bitOffset;
  if (auto added = addBits(btf_member_bit_offset(composite.type, index), walk.place.bitOffset); !added) {
    return std::unexpected(added.error());
  }
  ++walk.steps;
  auto found = findMember(walk, accessor, type);
  if (found && !*found) {
    --walk.steps;
    walk.place.bitOffset = before;
    searched_.push_back(type);
  } else {
    walk.target.useMember(composite.id, index);
  }
  return found;
}

/// Whether a field of the object may stand for one of the kernel (libbpf's bpf_core_fields_are_compat).
Expected<bool> FieldMatcher::compatible(TypeId local, const Types& target, TypeId candidate) {
  for (unsigned level = 0; level <= kMaximumChain; ++level) {
    const auto ours = object_.strip(local);
    const auto theirs = target.strip(candidate);
    if (!ours || !theirs) {
      return std::unexpected(ours ? theirs.error() : ours.error());
    }
    if (btf_is_composite(ours->type) && btf_is_composite(theirs->type)) {
      return true;
    }
    if (!sameKind(*ours->type, *theirs->type)) {
      return false;
    }
    switch (btf_kind(ours->type)) {
    case BTF_KIND_PTR:
    case BTF_KIND_FLOAT:
      return true;
    case BTF_KIND_FWD:
    case BTF_KIND_ENUM:
    case BTF_KIND_ENUM64: {
      const std::string_view ourFull = object_.string(ours->type->name_off);
      const std::string_view theirFull = target.string(theirs->type->name_off);
      if (!object_.payForNames(ourFull.size() + theirFull.size())) {
        return std::unexpected(Fault::tooMuchWork);
      }
      const auto ourName = btf::essentialName(ourFull);
      const auto theirName = btf::essentialName(theirFull);
      return ourName.empty() || theirName.empty() || ourName == theirName;
    }
    case BTF_KIND_INT:
      // An offset made an int a bitfield before members had a bit size of their own.
      return btf_int_offset(ours->type) == 0 && btf_int_offset(theirs->type) == 0;
    case BTF_KIND_ARRAY:
      local = btf_array(ours->type)->type;
      candidate = btf_array(theirs->type)->type;
      break;
    default:
      return false;
    }
  }
  return std::unexpected(Fault::nestedTooDeep);
}

Expected<std::optional<Place>> FieldMatcher::matchEnumerator(const LocalAccess& access, const Types& target,
                                                             TypeId root) {
  mismatch_ = {};
  const auto stripped = target.strip(root);
  if (!stripped) {
    return std::unexpected(stripped.error());
  }
  if (!btf_is_any_enum(stripped->type)) {
    return std::nullopt; // a typedef of the enum's name
  }
  const std::uint32_t count = btf_vlen(stripped->type);
  if (!work_.spend(count + 1)) {
    return std::unexpected(Fault::tooMuchWork);
  }
  const std::string_view local = access.accessors().front().name;
  if (!object_.payForNames(local.size())) {
    return std::unexpected(Fault::tooMuchWork);
  }
  const auto wanted = btf::essentialName(local);
  for (std::uint32_t index = 0; index < count; ++index) {
    const std::string_view name = target.string(enumeratorName(*stripped->type, index));
    if (!object_.payForNames(name.size())) {
      return std::unexpected(Fault::tooMuchWork);
    }
    if (btf::essentialName(name) == wanted) {
      target.useMember(stripped->id, index);
      return Place{.last = {.type = stripped->id, .index = index, .name = name.data()}, .bitOffset = 0};
    }
  }
  return mismatch(Mismatch::Reason::noSuchMember, stripped->id);
}

} // namespace btfd::core
