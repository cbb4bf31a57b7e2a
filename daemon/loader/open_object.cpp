#include "open_object.h"

#include "seam.h"

#include <bpf/btf.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <vector>

namespace btfd::loader {

namespace {

/// Whether a map of this name can be pinned: libbpf makes a path of it, which must not lead out of its directory. bpffs
/// takes no names with a dot (kernel/bpf/inode.c, bpf_lookup).
bool isPinName(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char character) {
    return std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '_';
  });
}

Outcome<void> checkPins(struct bpf_object& object) {
  struct bpf_map* map = nullptr;
  bpf_object__for_each_map(map, &object) {
    if (bpf_map__pin_path(map) != nullptr && !isPinName(bpf_map__name(map))) {
      return invalidObject("map '" + std::string(bpf_map__name(map)) +
                           "' cannot be pinned by its name: that takes letters, digits and underscores only");
    }
  }
  return {};
}

} // namespace

Outcome<object::ClientBytes> readObject(BorrowedFd file, const JobLimits& limits) {
  auto bytes = object::ClientBytes::read(file, limits.objectBytes);
  if (!bytes && bytes.error().code == EFBIG) {
    return std::unexpected(limitExceeded(bytes.error().message, "objectBytes", limits.objectBytes));
  }
  if (!bytes) {
    return invalidObject(bytes.error().message);
  }
  return std::move(*bytes);
}

Outcome<ObjectHandle> openObject(std::span<const std::byte> bytes, const object::OpenOptions& options,
                                 const object::LibbpfLog& log) {
  auto object = object::openWithLibbpf(bytes, options, log);
  if (!object) {
    return invalidObject(object.error().message);
  }
  if (auto checked = checkPins(**object); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  return std::move(*object);
}

Outcome<void> checkKconfig(const struct bpf_object& object, const nlohmann::json& kconfig) {
  const struct btf* btf = bpf_object__btf(&object);
  const __s32 section = btf == nullptr ? -ENOENT : btf__find_by_name_kind(btf, ".kconfig", BTF_KIND_DATASEC);
  std::vector<std::string> known;
  if (section > 0) {
    const struct btf_type* type = btf__type_by_id(btf, static_cast<std::uint32_t>(section));
    for (std::uint16_t i = 0; i < btf_vlen(type); ++i) {
      const struct btf_type* variable = btf__type_by_id(btf, btf_var_secinfos(type)[i].type);
      known.emplace_back(variable == nullptr ? "" : btf__name_by_offset(btf, variable->name_off));
    }
  }
  for (const auto& [name, value] : kconfig.items()) {
    if (std::ranges::find(known, name) == known.end()) {
      return noSuchName("variable", name, known);
    }
  }
  return {};
}

Outcome<int> loadObject(struct bpf_object& object) {
  const std::uint64_t missedBefore = seamCounters().missed;
  const int error = bpf_object__load(&object);
  if (error != 0 && seamCounters().missed != missedBefore) {
    return noKernelBtf("the object needs kernel BTF");
  }
  return -error;
}

Outcome<Variable> findVariable(const struct bpf_object& object, const MapsByName& maps, const std::string& name) {
  const struct btf* btf = bpf_object__btf(&object);
  std::vector<std::string> known;
  const std::uint32_t count = btf == nullptr ? 0 : btf__type_cnt(btf);
  for (std::uint32_t id = 1; id < count; ++id) {
    const struct btf_type* section = btf__type_by_id(btf, id);
    if (!btf_is_datasec(section)) {
      continue;
    }
    const char* sectionName = btf__name_by_offset(btf, section->name_off);
    const auto map = maps.find(sectionName);
    std::size_t size = 0;
    auto* memory = map ? static_cast<std::byte*>(bpf_map__initial_value(*map, &size)) : nullptr;
    if (memory == nullptr) {
      continue; // .maps, .kconfig, .ksyms and the like hold no variables of the object
    }
    for (std::uint16_t i = 0; i < btf_vlen(section); ++i) {
      const struct btf_var_secinfo& place = btf_var_secinfos(section)[i];
      const struct btf_type* variable = btf__type_by_id(btf, place.type);
      const char* variableName = btf__name_by_offset(btf, variable->name_off);
      // The section tells apart static variables that several source files have.
      const bool isMeant = name == variableName || name == std::string(sectionName) + "." + variableName;
      if (isMeant && place.offset <= size && place.size <= size - place.offset) {
        return Variable{.typeId = variable->type, .memory = std::span(memory + place.offset, place.size)};
      }
      known.emplace_back(variableName);
    }
  }
  return noSuchName("variable", name, known);
}

nlohmann::json describeLink(const std::string& program, AttachedLink link, JobReply& reply) {
  nlohmann::json described;
  described["program"] = program;
  described["kind"] = std::move(link.kind);
  described["target"] = std::move(link.target);
  if (link.kernelId) {
    described["kernelId"] = *link.kernelId;
  }
  described["detachBySocketOption"] = link.detachBy == DetachBy::socketOption;
  if (link.detachBy == DetachBy::programDetach) {
    described["programDetach"] = static_cast<std::uint32_t>(link.attachType);
  }
  if (link.filter) {
    described["filter"] = toJson(*link.filter);
    if (link.networkNamespace) {
      described["filter"]["namespaceDescriptor"] = reply.add(std::move(link.networkNamespace));
    }
  }
  if (!link.usdtSpecs.empty()) {
    described["usdtSpecs"] = link.usdtSpecs;
  }
  described["descriptors"] = nlohmann::json::array();
  for (UniqueFd& descriptor : link.descriptors) {
    described["descriptors"].push_back(reply.add(std::move(descriptor)));
  }
  return described;
}

} // namespace btfd::loader
