#include "load_diagnosis.h"

#include "attach_request.h"
#include "base/unique_fd.h"
#include "bpffs.h"
#include "job.h"
#include "kernel_names.h"
#include "object/opened_object.h"
#include "object/sought_type.h"

#include <bpf/bpf.h>

#include <cerrno>
#include <string_view>
#include <vector>

namespace btfd::loader {

namespace {

/// The program whose target this kernel does not have.
std::optional<LoadCause> findMissingTarget(struct bpf_object& object) {
  for (const struct bpf_program* program : autoloadedPrograms(object)) {
    const auto sought = object::soughtFor(*program);
    std::string target = sectionTarget(bpf_program__section_name(program));
    target.erase(0, target.find(':') + 1); // "module:function"; npos + 1 is 0
    if (!sought || kernelHas(std::string(sought->prefix) + target, sought->kind)) {
      continue;
    }
    const std::string name = bpf_program__name(program);
    return LoadCause{.message = "program '" + name + "' in section " + bpf_program__section_name(program) +
                                " cannot be loaded: the kernel has no " + std::string(sought->what) + " '" + target +
                                "'" + kernelNamesLike(target, sought->prefix, sought->kind),
                     .program = name,
                     .map = {}};
  }
  return std::nullopt;
}

std::optional<LoadCause> findTypelessProgram(struct bpf_object& object) {
  for (const struct bpf_program* program : autoloadedPrograms(object)) {
    if (bpf_program__type(program) != BPF_PROG_TYPE_UNSPEC) {
      continue;
    }
    const std::string name = bpf_program__name(program);
    return LoadCause{.message = "program '" + name + "': " + object::whyNoType(*program), .program = name, .map = {}};
  }
  return std::nullopt;
}

/// The program that would have to say what it is made for, and does not.
std::optional<LoadCause> findTargetlessProgram(struct bpf_object& object) {
  for (const struct bpf_program* program : autoloadedPrograms(object)) {
    const std::string section = bpf_program__section_name(program);
    const bool replaces = bpf_program__type(program) == BPF_PROG_TYPE_EXT;
    if (!replaces && (section.contains('/') || !object::soughtFor(*program))) {
      continue;
    }
    const std::string name = bpf_program__name(program);
    return LoadCause{.message = "program '" + name + "' in section " + section +
                                (replaces ? " replaces a function of a loaded BPF program, and nothing says of which: "
                                          : " is made for a function, and nothing says for which: ") +
                                "programs." + name + ".target of the request does",
                     .program = name,
                     .map = {}};
  }
  return std::nullopt;
}

std::string differs(std::string_view what, const std::string& declared, const std::string& given) {
  return "its " + std::string(what) + " is " + given + ", but the object declares " + declared;
}

std::optional<LoadCause> findOtherPinnedMap(struct bpf_object& object) {
  struct bpf_map* map = nullptr;
  bpf_object__for_each_map(map, &object) {
    const char* path = bpf_map__pin_path(map);
    const UniqueFd pinned(path == nullptr ? -1 : bpf_obj_get(path));
    struct bpf_map_info info{};
    __u32 length = sizeof(info);
    if (!pinned || bpf_map_get_info_by_fd(pinned.get(), &info, &length) < 0) {
      continue;
    }
    if (const std::string difference = formDifference(*map, info); !difference.empty()) {
      const std::string name = mapName(*map);
      return LoadCause{.message = "map '" + name + "' is pinned already, as another object has declared it: " +
                                  difference + "; unload that object, or give one of the maps another name",
                       .program = {},
                       .map = name};
    }
  }
  return std::nullopt;
}

/// The map for whose pin there is no place.
std::optional<LoadCause> findUnpinnableMap(struct bpf_object& object) {
  struct bpf_map* map = nullptr;
  bpf_object__for_each_map(map, &object) {
    const char* path = bpf_map__pin_path(map);
    if (const std::string why = path == nullptr ? "" : whyNotPinnable(path); !why.empty()) {
      const std::string name = mapName(*map);
      return LoadCause{.message = "map '" + name + "' cannot be pinned: " + why, .program = {}, .map = name};
    }
  }
  return std::nullopt;
}

} // namespace

std::optional<LoadCause> findLoadCause(struct bpf_object& object, int code) {
  if (code == ESRCH) {
    return findMissingTarget(object);
  }
  if (code == ENOENT) {
    return findUnpinnableMap(object);
  }
  if (code != EINVAL) {
    return std::nullopt;
  }
  auto cause = findUnpinnableMap(object);
  cause = cause ? cause : findOtherPinnedMap(object);
  cause = cause ? cause : findTypelessProgram(object);
  return cause ? cause : findTargetlessProgram(object);
}

std::string differenceTo(const struct bpf_map& map, const struct bpf_map_info& info) {
  if (info.type != bpf_map__type(&map)) {
    const char* own = object::mapTypeName(object::mapType(map));
    const char* given = object::mapTypeName(info.type);
    return differs("type", own == nullptr ? "unknown" : own, given == nullptr ? "unknown" : given);
  }
  if (info.key_size != bpf_map__key_size(&map)) {
    return differs("key size", std::to_string(bpf_map__key_size(&map)), std::to_string(info.key_size));
  }
  if (info.value_size != bpf_map__value_size(&map)) {
    return differs("value size", std::to_string(bpf_map__value_size(&map)), std::to_string(info.value_size));
  }
  return {};
}

std::string formDifference(const struct bpf_map& map, const struct bpf_map_info& info) {
  if (std::string difference = differenceTo(map, info); !difference.empty()) {
    return difference;
  }
  const auto declared = bpf_map__max_entries(&map);
  if (declared != 0 && info.max_entries != declared) {
    return differs("number of entries", std::to_string(declared), std::to_string(info.max_entries));
  }
  if (info.map_flags != bpf_map__map_flags(&map)) {
    return "its flags are " + std::to_string(info.map_flags) + ", but the object declares " +
           std::to_string(bpf_map__map_flags(&map));
  }
  return {};
}

} // namespace btfd::loader
