#include "explain.h"

#include "access.h"
#include "base/near_misses.h"
#include "base/text.h"
#include "btf/name_index.h"
#include "field_match.h"
#include "value.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace btfd::core {

namespace {

std::string_view kindWord(const struct btf_type& type) {
  switch (btf_kind(&type)) {
  case BTF_KIND_STRUCT:
    return "struct";
  case BTF_KIND_UNION:
    return "union";
  case BTF_KIND_ENUM:
  case BTF_KIND_ENUM64:
    return "enum";
  case BTF_KIND_FWD:
    return btf_kflag(&type) ? "union" : "struct";
  case BTF_KIND_TYPEDEF:
    return "typedef";
  case BTF_KIND_FUNC:
    return "function";
  case BTF_KIND_PTR:
    return "pointer";
  case BTF_KIND_ARRAY:
    return "array";
  case BTF_KIND_FUNC_PROTO:
    return "function prototype";
  default:
    return "";
  }
}

/// How many members or enumerators may be gone through to find a name that comes near: the largest structs of the
/// kernel have a few hundred.
constexpr std::size_t kMembersLookedAt = 20'000;

/// The names of the members of `id`, those of anonymous members included; `left` members may be looked at.
void collectMembers(const Types& types, TypeId id, unsigned level, std::size_t& left, std::vector<std::string>& names) {
  const auto stripped = types.strip(id);
  if (!stripped || level == 0) {
    return;
  }
  if (btf_is_any_enum(stripped->type)) {
    for (std::uint32_t index = 0; index < btf_vlen(stripped->type) && left > 0; ++index) {
      --left;
      names.emplace_back(types.string(enumeratorName(*stripped->type, index)));
    }
  }
  if (!btf_is_composite(stripped->type)) {
    return;
  }
  for (std::uint32_t index = 0; index < btf_vlen(stripped->type) && left > 0; ++index) {
    --left;
    const struct btf_member& member = btf_members(stripped->type)[index];
    if (const char* name = types.string(member.name_off); *name != '\0') {
      names.emplace_back(name);
    } else {
      collectMembers(types, member.type, level - 1, left, names);
    }
  }
}

std::vector<std::string> nearMembers(const Types& types, TypeId id, std::string_view wanted) {
  constexpr unsigned kLevels = 8;
  std::vector<std::string> names;
  std::size_t left = kMembersLookedAt;
  collectMembers(types, id, kLevels, left, names);
  return nearMisses(wanted, names);
}

/// Writes the reason for one relocation.
class Explainer {
 public:
  Explainer(const Types& object, const Targets& targets, const Relocation& relocation, NearNames& near)
      : object_(object), targets_(targets), relocation_(relocation), record_(relocation.record), near_(near) {}

  [[nodiscard]] std::string reason() const {
    switch (relocation_.fault) {
    case Fault::none:
      return {};
    case Fault::noCandidate:
      return noCandidate();
    case Fault::noMatch:
      return noMatch();
    case Fault::loadSizeChanged:
      return loadSizeChanged();
    case Fault::ambiguousValue:
      return "the kernel has " + nameWithTarget(relocation_.type) + " and " + nameWithTarget(relocation_.other) +
             ", which give different values, and nothing tells which of them is meant";
    case Fault::ambiguousLoadSize:
      return "the kernel has " + nameWithTarget(relocation_.type) + " and " + nameWithTarget(relocation_.other) +
             ", in which the field differs in size, and nothing tells which of them is meant";
    case Fault::contradictoryCandidates:
      return "the kernel has " + nameWithTarget(relocation_.type) + ", which has it, and " +
             nameWithTarget(relocation_.other) +
             ", which does not, but no type of this name has all that the object asks of it";
    default:
      return std::string(text());
    }
  }

 private:
  [[nodiscard]] std::string localName() const { return typeName(object_, record_.type); }

  [[nodiscard]] std::string_view essential() const {
    const struct btf_type* type = object_.find(record_.type);
    return type == nullptr ? std::string_view{} : btf::essentialName(object_.string(type->name_off));
  }

  [[nodiscard]] std::string nameWithTarget(TargetType type) const {
    const Target& target = targets_[type.target];
    return typeName(target.types, type.id) + " (type " + std::to_string(type.id) + " of " + std::string(target.name) +
           ")";
  }

  [[nodiscard]] std::string noCandidate() const {
    const struct btf_type* type = object_.find(record_.type);
    if (type == nullptr) {
      return "the kernel has no such type";
    }
    const std::string_view name = essential();
    const std::string_view word = kindWord(*type);
    std::string text =
        "the kernel has no " + (word.empty() ? std::string() : std::string(word) + " ") + quotedName(name);
    if (const std::string other = ofOtherKind(name); !other.empty()) {
      return text + "; it has " + other;
    }
    return text + itHas(near_.to(name, btf_kind(type)));
  }

  /// The kernel's type that has the name, but is of another kind.
  [[nodiscard]] std::string ofOtherKind(std::string_view name) const {
    std::string found;
    for (std::uint32_t target = 0; target < targets_.size() && found.empty(); ++target) {
      targets_[target].index->forEach(name, [&](TypeId id) {
        found = typeName(targets_[target].types, id);
        return false;
      });
    }
    return found;
  }

  /// A type of the name is there, but not what is asked of it: asks the first one again, for the reason.
  [[nodiscard]] std::string noMatch() const {
    std::vector<TargetType> candidates;
    const auto access = LocalAccess::parse(object_, record_.type, record_.kind, object_.string(record_.access));
    Work work;
    const bool found =
        object_.find(record_.type) != nullptr && targets_.findCandidates(object_, record_.type, work, candidates);
    if (!found || candidates.empty() || !access || access->accessors().empty()) {
      return "the kernel's type of this name lacks it";
    }
    FieldMatcher matcher(object_, work);
    const Types& types = targets_[candidates.front().target].types;
    if (isEnumeratorKind(record_.kind)) {
      static_cast<void>(matcher.matchEnumerator(*access, types, candidates.front().id));
    } else {
      static_cast<void>(matcher.matchField(*access, types, candidates.front().id));
    }
    const Mismatch& mismatch = matcher.mismatch();
    const Accessor& accessor =
        access->accessors()[std::min<std::size_t>(mismatch.accessor, access->accessors().size() - 1)];
    std::string text = lack(types, mismatch, accessor);
    if (candidates.size() > 1) {
      text += " (nor does any of the " + std::to_string(candidates.size() - 1) + " other types of this name have it)";
    }
    return text;
  }

  [[nodiscard]] std::string lack(const Types& types, const Mismatch& mismatch, const Accessor& accessor) const {
    const std::string theirs = "the kernel's " + typeName(types, mismatch.type);
    const std::string_view name = accessor.name == nullptr ? std::string_view{} : accessor.name;
    switch (mismatch.reason) {
    case Mismatch::Reason::noSuchMember:
      return theirs + " has no " + quotedName(name) + itHas(nearMembers(types, mismatch.type, name));
    case Mismatch::Reason::incompatibleMember:
      return "in the kernel " + quotedName(name) + " is of another kind of type: " + typeName(types, mismatch.type) +
             ", while the object has " + memberType(accessor);
    case Mismatch::Reason::notAStruct:
      return "the kernel has " + typeName(types, mismatch.type) + " where the object has a struct or union with " +
             quotedName(name);
    case Mismatch::Reason::notAnArray:
      return "the kernel has " + typeName(types, mismatch.type) + " where the object has an array";
    case Mismatch::Reason::indexOutOfBounds:
      return "the kernel's array is shorter: it has no element " + std::to_string(accessor.index);
    case Mismatch::Reason::none:
      break;
    }
    return "the kernel's type of this name lacks it";
  }

  /// The type of the object's member that `accessor` names.
  [[nodiscard]] std::string memberType(const Accessor& accessor) const {
    const struct btf_type* composite = object_.find(accessor.type);
    const bool isMember = composite != nullptr && btf_is_composite(composite) && accessor.index < btf_vlen(composite);
    return isMember ? typeName(object_, btf_members(composite)[accessor.index].type) : "another";
  }

  [[nodiscard]] std::string loadSizeChanged() const {
    std::string text = "the field's size is another in the kernel";
    if (const auto sizes = sizesOfField()) {
      text = "the field has " + std::to_string(sizes->first) + " bytes in the object and " +
             std::to_string(sizes->second) + " in the kernel";
    }
    return text +
           ", and only a load of an unsigned integer or a pointer can be made one of another width; read it with "
           "BPF_CORE_READ_INTO or bpf_core_read into a variable of the kernel's size";
  }

  [[nodiscard]] std::optional<std::pair<std::uint64_t, std::uint64_t>> sizesOfField() const {
    const auto access = LocalAccess::parse(object_, record_.type, record_.kind, object_.string(record_.access));
    if (!access || relocation_.type.id == 0) {
      return std::nullopt;
    }
    Work work;
    const Types& types = targets_[relocation_.type.target].types;
    const auto place = FieldMatcher(object_, work).matchField(*access, types, relocation_.type.id);
    if (!place || !*place) {
      return std::nullopt;
    }
    const bool bigEndian = object_.isBigEndian();
    const auto ours = fieldValue(Kind::fieldByteOffset, object_, access->place(), bigEndian);
    const auto theirs = fieldValue(Kind::fieldByteOffset, types, **place, bigEndian);
    return ours && theirs ? std::optional(std::pair(ours->loadSize, theirs->loadSize)) : std::nullopt;
  }

  /// Faults that need no more than a word: those of the object, which its compiler or a tool that changed it made.
  [[nodiscard]] std::string_view text() const {
    switch (relocation_.fault) {
    case Fault::unknownKind:
      return "the object asks for a kind of relocation that is not known (enum bpf_core_relo_kind of Linux 6.18)";
    case Fault::unknownType:
      return "it refers to a type that its BTF does not have";
    case Fault::anonymousRoot:
      return "its type has no name, so that it cannot be looked up in the kernel";
    case Fault::accessMalformed:
      return "its access string is none: it must consist of numbers with a colon between each two";
    case Fault::accessTooLong:
      return "its access string has more than 64 steps";
    case Fault::accessOutOfRange:
      return "its access string names a member, element or enumerator that the object's type does not have";
    case Fault::accessIntoScalar:
      return "its access string goes into a type that has neither members nor elements";
    case Fault::accessNotZero:
      return "its access string must be \"0\", as it is about a type as a whole";
    case Fault::notAnEnum:
      return "it is about an enumerator, but its type is no enum";
    case Fault::kindNeedsNamedField:
      return "it asks for the sign or the shifts of an array's element, which only named fields have";
    case Fault::modifierChain:
      return "its type, or the kernel's, is behind more than 128 typedefs and modifiers, or they form a circle";
    case Fault::nestedTooDeep:
      return "its type, or the kernel's, is nested too deep";
    case Fault::sizeUnknown:
      return "it needs the size of a type that has none";
    case Fault::sizeOverflow:
    case Fault::offsetOverflow:
      return "a size or offset of its type, or of the kernel's, is larger than 4 GiB";
    case Fault::bitfieldOfOddType:
      return "its field, or the kernel's, is a bitfield of a type that is neither integer nor enum";
    case Fault::bitfieldTooWide:
      return "its field, or the kernel's, is a bitfield that no load of 8 bytes holds";
    case Fault::tooMuchWork:
      return "comparing its types with the kernel's takes more steps than any real object needs";
    default:
      return instructionText();
    }
  }

  [[nodiscard]] std::string_view instructionText() const {
    switch (relocation_.fault) {
    case Fault::sectionMissing:
      return "it is for a section that the object does not have";
    case Fault::instructionOutside:
      return "its instruction lies outside its section";
    case Fault::instructionMisaligned:
      return "its offset is not that of an instruction";
    case Fault::instructionKind:
      return "its instruction is of a kind that no such relocation can apply to";
    case Fault::instructionValue:
      return "its instruction does not hold the value that the object's types say, so the object was not compiled with "
             "this BTF, or was changed";
    case Fault::instructionLoadSize:
      return "its instruction loads another number of bytes than the field has";
    case Fault::wideLoadForm:
      return "its instruction is a load of a 64-bit constant, but not of the form that compilers write";
    case Fault::offsetTooLarge:
      return "the field's offset in the kernel does not fit the instruction, which has room for 32767";
    case Fault::immediateTooLarge:
      return "the kernel's value does not fit the instruction, which has room for 32 bits";
    case Fault::newLoadSize:
      return "in the kernel the field has a size that no instruction can load: not 1, 2, 4 or 8 bytes";
    default:
      return "it cannot be resolved";
    }
  }

  const Types& object_;
  const Targets& targets_;
  const Relocation& relocation_;
  const Record& record_;
  NearNames& near_;
};

} // namespace

std::string_view kindName(Kind kind) {
  // libbpf's core_relo_kind_str.
  switch (kind) {
  case Kind::fieldByteOffset:
    return "byte_off";
  case Kind::fieldByteSize:
    return "byte_sz";
  case Kind::fieldExists:
    return "field_exists";
  case Kind::fieldSigned:
    return "signed";
  case Kind::fieldLeftShift:
    return "lshift_u64";
  case Kind::fieldRightShift:
    return "rshift_u64";
  case Kind::typeIdLocal:
    return "local_type_id";
  case Kind::typeIdTarget:
    return "target_type_id";
  case Kind::typeExists:
    return "type_exists";
  case Kind::typeSize:
    return "type_size";
  case Kind::enumeratorExists:
    return "enumval_exists";
  case Kind::enumeratorValue:
    return "enumval_value";
  case Kind::typeMatches:
    return "type_matches";
  }
  return "unknown";
}

std::string_view outcomeName(Outcome outcome) {
  switch (outcome) {
  case Outcome::resolved:
    return "resolved";
  case Outcome::poisoned:
    return "poisoned";
  case Outcome::failed:
    break;
  }
  return "failed";
}

std::string typeName(const Types& types, TypeId id) {
  const struct btf_type* type = types.find(id);
  if (type == nullptr) {
    return "type " + std::to_string(id);
  }
  if (id == 0) {
    return "void";
  }
  // const, volatile and the like say nothing of what is compared.
  if (btf_is_mod(type)) {
    const auto stripped = types.strip(id);
    return stripped ? typeName(types, stripped->id) : "type " + std::to_string(id);
  }
  std::string text(kindWord(*type));
  if (btf_is_ptr(type) || btf_is_array(type) || btf_is_func_proto(type)) {
    return "a " + text;
  }
  const std::string_view name = types.string(type->name_off);
  text += (text.empty() ? "" : " ") + (name.empty() ? std::string("(anonymous)") : shown(name));
  return text;
}

std::string accessPath(const Types& object, const Record& record) {
  std::string path = typeName(object, record.type);
  if (isTypeKind(record.kind)) {
    return path;
  }
  const char* text = object.string(record.access);
  const auto access = LocalAccess::parse(object, record.type, record.kind, text);
  if (!access) {
    return path + " \"" + shown(text) + "\"";
  }
  bool first = true;
  for (const Accessor& accessor : access->accessors()) {
    if (accessor.name != nullptr) {
      path += "." + shown(accessor.name);
    } else if (!first || accessor.index != 0) {
      path += "[" + std::to_string(accessor.index) + "]";
    }
    first = false;
  }
  return path;
}

std::string explain(const Types& object, const Targets& targets, const Relocation& relocation, NearNames& near) {
  return Explainer(object, targets, relocation, near).reason();
}

} // namespace btfd::core
