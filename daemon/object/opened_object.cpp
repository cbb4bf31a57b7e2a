#include "opened_object.h"

#include "base/text.h"

#include <bpf/btf.h>

#include <cerrno>
#include <cstring>
#include <ranges>
#include <vector>

namespace btfd::object {

namespace {

/// libbpf's error of bpf_object__open in words: it has numbers of its own from __LIBBPF_ERRNO__START on.
std::string openErrorText(int code) {
  std::string text(256, '\0');
  libbpf_strerror(code, text.data(), text.size());
  text.resize(std::strlen(text.c_str()));
  return text;
}

std::string because(const LibbpfLog& log, int code) {
  if (code == ENOENT && log.warnings().empty()) {
    return "its BTF or its relocations refer to a section that the file does not have";
  }
  return log.warnings().empty() ? openErrorText(code) : log.warnings().front() + " (" + openErrorText(code) + ")";
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

Result<ObjectHandle> openWithLibbpf(std::span<const std::byte> image, const OpenOptions& how, const LibbpfLog& log) {
  // No token: who loads has the capabilities, and libbpf would try to make one for each object.
  LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = how.name.empty() ? "object" : how.name.c_str(),
              .pin_root_path = how.pinDirectory.empty() ? nullptr : how.pinDirectory.c_str(),
              .kconfig = how.kconfig.empty() ? nullptr : how.kconfig.c_str(), .bpf_token_path = "");
  ObjectHandle object(bpf_object__open_mem(image.data(), image.size(), &options));
  if (!object) {
    const int code = errno;
    if (!log.warnings().empty() && log.warnings().front().starts_with("BTF is required")) {
      return fail("the object has no BTF (section .BTF), which its maps or other parts of it need: compile it with -g",
                  code);
    }
    return fail("libbpf cannot open the object: " + because(log, code), code);
  }
  return object;
}

std::string whyNothingToLoad(struct bpf_object& object) {
  if (bpf_object__next_program(&object, nullptr) != nullptr) {
    return {};
  }
  const std::vector<std::string> functions = functionsOf(object);
  if (functions.empty()) {
    return bpf_object__next_map(&object, nullptr) == nullptr ? "the object has neither programs nor maps" : "";
  }
  const auto inQuotes = [](const std::string& name) { return "'" + name + "'"; };
  return "the object has no programs: a program is a function behind SEC(...), and none of its functions (" +
         joined(functions | std::views::transform(inQuotes)) + ") has one";
}

std::string whyNoType(const struct bpf_program& program) {
  const std::string section = bpf_program__section_name(&program);
  return (section == ".text" ? std::string("it has no SEC(...); it needs one")
                             : "libbpf knows no program type for section '" + section + "'; it needs a section") +
         R"( that says its type, such as SEC("tp_btf/sched_switch") or SEC("xdp"))";
}

/// C allows an enum all numbers of its integer type, C++ does not.
__attribute__((no_sanitize("enum"))) std::uint32_t mapType(const struct bpf_map& map) {
  return static_cast<std::uint32_t>(bpf_map__type(&map));
}

const char* mapTypeName(std::uint32_t type) {
  return libbpf_bpf_map_type_str(static_cast<enum bpf_map_type>(type)); // which knows its own range
}

} // namespace btfd::object
