#include "type_match.h"

#include "btf/name_index.h"

#include <string_view>

namespace btfd::core {

namespace {

/// How deep types may lie in one another, and how many pointers and arrays may follow on each level: as libbpf has it.
constexpr unsigned kLevels = 32;

/// What a pair of types costs that is compared for the first time: it is remembered, which takes some 50 bytes.
constexpr std::uint64_t kPairCost = 32;

/// BTF has at most 2^20 types a part (BTF_MAX_TYPE), so two ids and a bit have room.
std::uint64_t keyOf(TypeId local, TypeId candidate, bool behindPointer = false) {
  return (std::uint64_t{local} << 32U | candidate) << 1U | (behindPointer ? 1U : 0U);
}

bool flag(const struct btf_type& type) {
  return btf_kflag(&type);
}

} // namespace

Expected<bool> TypeMatcher::compatible(TypeId local, TypeId candidate) {
  known_.clear();
  return compatibleWithin(local, candidate, kLevels);
}

Expected<TypeMatcher::StrippedPair> TypeMatcher::next(TypeId local, TypeId candidate) {
  const auto ours = object_.strip(local);
  const auto theirs = target_.strip(candidate);
  if (!ours || !theirs) {
    return std::unexpected(ours ? theirs.error() : ours.error());
  }
  if (!work_.spend()) {
    return std::unexpected(Fault::tooMuchWork);
  }
  return StrippedPair{.ours = *ours, .theirs = *theirs};
}

Expected<bool> TypeMatcher::compatibleWithin(TypeId local, TypeId candidate, unsigned level) {
  // Only what was found compatible is noted: the first that is not ends the whole comparison.
  const std::uint64_t key = keyOf(local, candidate);
  if (known_.contains(key)) {
    return true;
  }
  if (!work_.spend(kPairCost)) {
    return std::unexpected(Fault::tooMuchWork);
  }
  for (unsigned depth = 0; depth < kLevels; ++depth) {
    const auto pair = next(local, candidate);
    if (!pair) {
      return std::unexpected(pair.error());
    }
    const auto& [ours, theirs] = *pair;
    if (!sameKind(*ours.type, *theirs.type)) {
      return false;
    }
    bool done = true;
    switch (btf_kind(ours.type)) {
    case BTF_KIND_UNKN:
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
    case BTF_KIND_ENUM:
    case BTF_KIND_ENUM64:
    case BTF_KIND_FWD:
      break;
    case BTF_KIND_INT:
      if (btf_int_offset(ours.type) != 0 || btf_int_offset(theirs.type) != 0) {
        return false;
      }
      break;
    case BTF_KIND_ARRAY:
      local = btf_array(ours.type)->type;
      candidate = btf_array(theirs.type)->type;
      done = false;
      break;
    case BTF_KIND_FUNC_PROTO:
      if (auto fit = compatibleParameters(ours, theirs, level); !fit || !*fit) {
        return fit;
      }
      [[fallthrough]]; // to the return type
    case BTF_KIND_PTR:
      local = ours.type->type;
      candidate = theirs.type->type;
      done = false;
      break;
    default:
      return false;
    }
    if (done) {
      known_.emplace(key, true);
      return true;
    }
  }
  return std::unexpected(Fault::nestedTooDeep);
}

Expected<bool> TypeMatcher::compatibleParameters(const Stripped& ours, const Stripped& theirs, unsigned level) {
  const std::uint32_t count = btf_vlen(ours.type);
  if (count != btf_vlen(theirs.type)) {
    return false;
  }
  for (std::uint32_t index = 0; index < count; ++index) {
    if (level == 0) {
      return std::unexpected(Fault::nestedTooDeep);
    }
    auto fit = compatibleWithin(btf_params(ours.type)[index].type, btf_params(theirs.type)[index].type, level - 1);
    if (!fit || !*fit) {
      return fit;
    }
  }
  return true;
}

Expected<bool> TypeMatcher::matches(TypeId local, TypeId candidate) {
  known_.clear();
  return matchesWithin(local, candidate, false, kLevels);
}

Expected<bool> TypeMatcher::matchesWithin(TypeId local, TypeId candidate, bool behindPointer, unsigned level) {
  const std::uint64_t key = keyOf(local, candidate, behindPointer);
  if (const auto known = known_.find(key); known != known_.end()) {
    return known->second;
  }
  if (!work_.spend(kPairCost)) {
    return std::unexpected(Fault::tooMuchWork);
  }
  auto result = matchesOnce(local, candidate, behindPointer, level);
  if (result) {
    known_.emplace(key, *result);
  }
  return result;
}

Expected<bool> TypeMatcher::matchesOnce(TypeId local, TypeId candidate, bool behindPointer, unsigned level) {
  if (level == 0) {
    return std::unexpected(Fault::nestedTooDeep);
  }
  for (unsigned depth = 0; depth < kLevels; ++depth) {
    const auto pair = next(local, candidate);
    if (!pair) {
      return std::unexpected(pair.error());
    }
    const auto& [ours, theirs] = *pair;
    if (!namesMatch(ours.type->name_off, theirs.type->name_off)) {
      return false;
    }
    if (auto match = matchesKind(ours, theirs, behindPointer, level); !match || !*match) {
      return match;
    }
    switch (btf_kind(ours.type)) {
    case BTF_KIND_PTR:
      behindPointer = true;
      [[fallthrough]];
    case BTF_KIND_FUNC_PROTO:
      local = ours.type->type;
      candidate = theirs.type->type;
      break;
    case BTF_KIND_ARRAY:
      local = btf_array(ours.type)->type;
      candidate = btf_array(theirs.type)->type;
      break;
    default:
      return true;
    }
  }
  return std::unexpected(Fault::nestedTooDeep);
}

/// What can be said of two types without following what pointers, arrays and functions lead to.
Expected<bool> TypeMatcher::matchesKind(const Stripped& ours, const Stripped& theirs, bool behindPointer,
                                        unsigned level) {
  const auto kind = btf_kind(ours.type);
  const bool same = kind == btf_kind(theirs.type);
  switch (kind) {
  case BTF_KIND_UNKN:
    return same;
  case BTF_KIND_FWD:
    // The flag of a forward declaration says union.
    if (same) {
      return flag(*ours.type) == flag(*theirs.type);
    }
    return behindPointer && btf_kind(theirs.type) == (flag(*ours.type) ? BTF_KIND_UNION : BTF_KIND_STRUCT);
  case BTF_KIND_STRUCT:
  case BTF_KIND_UNION:
    if (behindPointer) {
      return same || (btf_is_fwd(theirs.type) && flag(*theirs.type) == (kind == BTF_KIND_UNION));
    }
    target_.useAllMembers(theirs.id);
    return same ? membersMatch(*ours.type, *theirs.type, level) : false;
  case BTF_KIND_ENUM:
  case BTF_KIND_ENUM64:
    target_.useAllMembers(theirs.id);
    return btf_is_any_enum(theirs.type) ? enumsMatch(*ours.type, *theirs.type) : false;
  case BTF_KIND_INT: {
    const auto isSigned = [](const struct btf_type* type) { return (btf_int_encoding(type) & BTF_INT_SIGNED) != 0; };
    return same && ours.type->size == theirs.type->size && isSigned(ours.type) == isSigned(theirs.type);
  }
  case BTF_KIND_PTR:
    return same;
  case BTF_KIND_ARRAY:
    return same && btf_array(ours.type)->nelems == btf_array(theirs.type)->nelems;
  case BTF_KIND_FUNC_PROTO:
    return same ? parametersMatch(*ours.type, *theirs.type, behindPointer, level) : false;
  default:
    return false;
  }
}

/// Whether each enumerator of ours is there, whatever its value.
Expected<bool> TypeMatcher::enumsMatch(const struct btf_type& ours, const struct btf_type& theirs) {
  const std::uint32_t count = btf_vlen(&ours);
  const std::uint32_t theirCount = btf_vlen(&theirs);
  if (ours.size != theirs.size || count > theirCount) {
    return false;
  }
  // Both are nearly always in one order: each search begins where the last one ended.
  std::uint32_t at = 0;
  for (std::uint32_t index = 0; index < count; ++index) {
    std::uint32_t tried = 0;
    while (!namesMatch(enumeratorName(ours, index), enumeratorName(theirs, at))) {
      if (!work_.spend()) {
        return std::unexpected(Fault::tooMuchWork);
      }
      at = at + 1 == theirCount ? 0 : at + 1;
      if (++tried == theirCount) {
        return false;
      }
    }
  }
  return true;
}

/// Whether each member of ours has one of the same name in theirs that matches.
Expected<bool> TypeMatcher::membersMatch(const struct btf_type& ours, const struct btf_type& theirs, unsigned level) {
  const std::uint32_t count = btf_vlen(&ours);
  const std::uint32_t theirCount = btf_vlen(&theirs);
  if (count > theirCount) {
    return false;
  }
  std::uint32_t at = 0;
  for (std::uint32_t index = 0; index < count; ++index) {
    const struct btf_member& member = btf_members(&ours)[index];
    bool found = false;
    for (std::uint32_t tried = 0; tried < theirCount && !found; ++tried) {
      if (!work_.spend()) {
        return std::unexpected(Fault::tooMuchWork);
      }
      const struct btf_member& candidate = btf_members(&theirs)[at];
      at = at + 1 == theirCount ? 0 : at + 1;
      if (namesMatch(member.name_off, candidate.name_off)) {
        const auto match = matchesWithin(member.type, candidate.type, false, level - 1);
        if (!match) {
          return match;
        }
        found = *match;
      }
    }
    if (!found) {
      return false;
    }
  }
  return true;
}

Expected<bool> TypeMatcher::parametersMatch(const struct btf_type& ours, const struct btf_type& theirs,
                                            bool behindPointer, unsigned level) {
  const std::uint32_t count = btf_vlen(&ours);
  if (count != btf_vlen(&theirs)) {
    return false;
  }
  for (std::uint32_t index = 0; index < count; ++index) {
    auto match =
        matchesWithin(btf_params(&ours)[index].type, btf_params(&theirs)[index].type, behindPointer, level - 1);
    if (!match || !*match) {
      return match;
    }
  }
  return true;
}

/// Whether the essential names are the same; those without a name match each other only.
bool TypeMatcher::namesMatch(std::uint32_t ours, std::uint32_t theirs) const {
  const std::string_view ourName = object_.string(ours);
  const std::string_view theirName = target_.string(theirs);
  if (!object_.payForNames(ourName.size() + theirName.size())) {
    return false; // and the next step is one too many
  }
  return btf::essentialName(ourName) == btf::essentialName(theirName);
}

} // namespace btfd::core
