#include "types.h"

#include <algorithm>
#include <array>
#include <limits>

namespace btfd::core {

namespace {

/// How compilers spell the integer that is as wide as a pointer (libbpf's determine_ptr_size).
constexpr std::array<std::string_view, 11> kLongNames{"long",
                                                      "long int",
                                                      "int long",
                                                      "unsigned long",
                                                      "long unsigned",
                                                      "unsigned long int",
                                                      "unsigned int long",
                                                      "long unsigned int",
                                                      "long int unsigned",
                                                      "int unsigned long",
                                                      "int long unsigned"};

} // namespace

Types Types::ofKernel(const struct ::btf& btf) {
  // btf__pointer_size would note its answer in the BTF, which others read at the same time.
  const auto id = findLong(btf);
  return {btf, id ? btf__type_by_id(&btf, *id)->size : static_cast<std::uint32_t>(sizeof(void*))};
}

std::optional<TypeId> Types::findLong(const struct ::btf& btf) {
  const Types types(btf, sizeof(void*));
  for (TypeId id = 1; id < types.count(); ++id) {
    const struct btf_type& type = *types.find(id);
    if (btf_is_int(&type) && (type.size == 4 || type.size == 8) &&
        std::ranges::find(kLongNames, std::string_view(types.string(type.name_off))) != kLongNames.end()) {
      return id;
    }
  }
  return std::nullopt;
}

Expected<Stripped> Types::strip(TypeId id) const {
  for (unsigned step = 0; step <= kMaximumChain; ++step) {
    const struct btf_type* type = find(id);
    if (type == nullptr) {
      return std::unexpected(Fault::unknownType);
    }
    if (work_ != nullptr && !work_->spend()) {
      return std::unexpected(Fault::tooMuchWork);
    }
    use(id);
    if (!btf_is_mod(type) && !btf_is_typedef(type)) {
      return Stripped{.id = id, .type = type};
    }
    id = type->type;
  }
  return std::unexpected(Fault::modifierChain);
}

Expected<Stripped> Types::element(TypeId id) const {
  for (unsigned level = 0; level <= kMaximumChain; ++level) {
    const auto stripped = strip(id);
    if (!stripped || !btf_is_array(stripped->type)) {
      return stripped;
    }
    id = btf_array(stripped->type)->type;
  }
  return std::unexpected(Fault::nestedTooDeep);
}

Expected<std::uint64_t> Types::size(TypeId id) const {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint32_t>::max();
  std::uint64_t elements = 1;
  for (unsigned level = 0; level <= kMaximumChain; ++level) {
    const auto stripped = strip(id);
    if (!stripped) {
      return std::unexpected(stripped.error());
    }
    const struct btf_type& type = *stripped->type;
    std::uint64_t size = 0;
    switch (btf_kind(&type)) {
    case BTF_KIND_ARRAY:
      elements *= btf_array(&type)->nelems;
      if (elements > kLargest) {
        return std::unexpected(Fault::sizeOverflow);
      }
      id = btf_array(&type)->type;
      continue;
    case BTF_KIND_VAR:
    case BTF_KIND_DECL_TAG:
      id = type.type;
      continue;
    case BTF_KIND_INT:
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
    case BTF_KIND_ENUM:
    case BTF_KIND_ENUM64:
    case BTF_KIND_DATASEC:
    case BTF_KIND_FLOAT:
      size = type.size;
      break;
    case BTF_KIND_PTR:
      size = pointerSize_;
      break;
    default:
      return std::unexpected(Fault::sizeUnknown);
    }
    if (elements != 0 && size > kLargest / elements) {
      return std::unexpected(Fault::sizeOverflow);
    }
    return elements * size;
  }
  return std::unexpected(Fault::nestedTooDeep);
}

} // namespace btfd::core
