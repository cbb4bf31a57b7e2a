#include "load_diagnosis.h"

#include "attach_request.h"
#include "base/unique_fd.h"
#include "job.h"
#include "kernel_names.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include <cerrno>
#include <string_view>
#include <vector>

namespace btfd::loader {

namespace {

/// What libbpf looks for in kernel BTF for a program: a type of this kind, called `prefix` and the target's name
/// (libbpf's btf_get_kernel_prefix_kind).
struct SoughtType {
  std::string_view what;
  std::string_view prefix;
  unsigned kind;
};

std::optional<SoughtType> soughtFor(const struct bpf_program& program) {
  const auto type = bpf_program__type(&program);
  if (type == BPF_PROG_TYPE_LSM) {
    return SoughtType{.what = "LSM hook", .prefix = "bpf_lsm_", .kind = BTF_KIND_FUNC};
  }
  if (type != BPF_PROG_TYPE_TRACING) {
    return std::nullopt;
  }
  switch (bpf_program__expected_attach_type(&program)) {
  case BPF_TRACE_RAW_TP:
    return SoughtType{.what = "tracepoint", .prefix = "btf_trace_", .kind = BTF_KIND_TYPEDEF};
  case BPF_TRACE_ITER:
    return SoughtType{.what = "iterator", .prefix = "bpf_iter_", .kind = BTF_KIND_FUNC};
  default:
    return SoughtType{.what = "function", .prefix = "", .kind = BTF_KIND_FUNC};
  }
}

/// The program whose target this kernel does not have.
std::optional<LoadCause> findMissingTarget(struct bpf_object& object) {
  for (const struct bpf_program* program : autoloadedPrograms(object)) {
    const auto sought = soughtFor(*program);
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
    const std::string section = bpf_program__section_name(program);
    constexpr std::string_view kExample = R"(such as SEC("tp_btf/sched_switch") or SEC("xdp"))";
    std::string message = section == ".text"
                              ? "program '" + name + "' has no SEC(...): it needs one that says its type, "
                              : "program '" + name + "': libbpf knows no program type for section '" + section +
                                    "'; it needs a section that says its type, ";
    return LoadCause{.message = message + std::string(kExample), .program = name, .map = {}};
  }
  return std::nullopt;
}

/// In which way a map that is pinned, `info`, is not what `map` declares: libbpf wants more to agree than where a map
/// is given to it (its map_is_reuse_compat).
std::string pinDifference(const struct bpf_map& map, const struct bpf_map_info& info) {
  if (std::string difference = differenceTo(map, info); !difference.empty()) {
    return difference;
  }
  const auto declared = bpf_map__max_entries(&map);
  if (declared != 0 && info.max_entries != declared) {
    return "its number of entries is " + std::to_string(info.max_entries) + ", but the object declares " +
           std::to_string(declared);
  }
  if (info.map_flags != bpf_map__map_flags(&map)) {
    return "its flags are " + std::to_string(info.map_flags) + ", but the object declares " +
           std::to_string(bpf_map__map_flags(&map));
  }
  return {};
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
    if (const std::string difference = pinDifference(*map, info); !difference.empty()) {
      const std::string name = mapName(*map);
      return LoadCause{.message = "map '" + name + "' is pinned already, as another object has declared it: " +
                                  difference + "; unload that object, or give one of the maps another name",
                       .program = {},
                       .map = name};
    }
  }
  return std::nullopt;
}

/// Names of the functions that the object's BTF has, the first few of them.
std::vector<std::string> functionsOf(const struct bpf_object& object) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> names;
  const struct btf* btf = bpf_object__btf(&object);
  const std::uint32_t count = btf == nullptr ? 0 : btf__type_cnt(btf);
  for (std::uint32_t id = 1; id < count && names.size() < kMost; ++id) {
    const struct btf_type* type = btf__type_by_id(btf, id);
    if (btf_is_func(type) && btf_vlen(type) != BTF_FUNC_EXTERN) { // of functions, vlen is the linkage
      names.emplace_back(btf__name_by_offset(btf, type->name_off));
    }
  }
  return names;
}

} // namespace

std::optional<LoadCause> findLoadCause(struct bpf_object& object, int code) {
  if (code == ESRCH) {
    return findMissingTarget(object);
  }
  if (code != EINVAL) {
    return std::nullopt;
  }
  auto cause = findOtherPinnedMap(object);
  return cause ? cause : findTypelessProgram(object);
}

std::string whyNothingToLoad(struct bpf_object& object) {
  if (bpf_object__next_program(&object, nullptr) != nullptr) {
    return {};
  }
  const std::vector<std::string> functions = functionsOf(object);
  if (functions.empty()) {
    return bpf_object__next_map(&object, nullptr) == nullptr ? "the object has neither programs nor maps" : "";
  }
  std::string names;
  for (const std::string& function : functions) {
    names += (names.empty() ? "'" : ", '") + function + "'";
  }
  return "the object has no programs: a program is a function behind SEC(...), and none of its functions (" + names +
         ") has one";
}

std::string differenceTo(const struct bpf_map& map, const struct bpf_map_info& info) {
  const auto differs = [](std::string_view what, const std::string& declared, const std::string& given) {
    return "its " + std::string(what) + " is " + given + ", but the object declares " + declared;
  };
  if (info.type != bpf_map__type(&map)) {
    const char* given = libbpf_bpf_map_type_str(static_cast<enum bpf_map_type>(info.type));
    return differs("type", libbpf_bpf_map_type_str(bpf_map__type(&map)), given == nullptr ? "unknown" : given);
  }
  if (info.key_size != bpf_map__key_size(&map)) {
    return differs("key size", std::to_string(bpf_map__key_size(&map)), std::to_string(info.key_size));
  }
  if (info.value_size != bpf_map__value_size(&map)) {
    return differs("value size", std::to_string(bpf_map__value_size(&map)), std::to_string(info.value_size));
  }
  return {};
}

} // namespace btfd::loader
