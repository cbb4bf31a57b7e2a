#include "program_options.h"

#include "base/near_misses.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include <net/if.h>

namespace btfd::loader {

namespace {

/// Names by number, as `name` has them, up to the first number that has none.
template <typename Enum>
std::vector<std::string> namesOf(const char* (*name)(Enum)) {
  std::vector<std::string> names;
  for (int number = 0; const char* each = name(static_cast<Enum>(number)); ++number) {
    names.emplace_back(each);
  }
  return names;
}

/// The number of the type called `wanted`.
template <typename Enum>
std::optional<Enum> numberOf(const std::vector<std::string>& names, const std::string& wanted) {
  const auto found = std::ranges::find(names, wanted);
  return found == names.end() ? std::nullopt : std::optional(static_cast<Enum>(found - names.begin()));
}

/// What such programs work on, libbpf finds by their section, which stands for one type of program only.
bool needsItsSection(enum bpf_prog_type type) {
  return type == BPF_PROG_TYPE_TRACING || type == BPF_PROG_TYPE_LSM || type == BPF_PROG_TYPE_EXT ||
         type == BPF_PROG_TYPE_STRUCT_OPS || type == BPF_PROG_TYPE_UNSPEC;
}

Outcome<void> setType(struct bpf_program& program, const std::string& wanted, const std::string& path) {
  const std::vector<std::string> names = namesOf(libbpf_bpf_prog_type_str);
  enum bpf_prog_type type = BPF_PROG_TYPE_UNSPEC;
  enum bpf_attach_type attachType = bpf_program__expected_attach_type(&program);
  if (const auto named = numberOf<enum bpf_prog_type>(names, wanted)) {
    type = *named;
  } else if (libbpf_prog_type_by_name(wanted.c_str(), &type, &attachType) < 0) {
    return invalidParameter(path, "'" + wanted + "' is neither a program type nor a section name that stands for one" +
                                      didYouMean(nearMisses(wanted, names)));
  }
  if (type != bpf_program__type(&program) && needsItsSection(type)) {
    return invalidParameter(path, "program '" + std::string(bpf_program__name(&program)) + "' cannot be of type " +
                                      names.at(type) + " unless its section says so, with what it is for");
  }
  bpf_program__set_type(&program, type);
  bpf_program__set_expected_attach_type(&program, attachType);
  return {};
}

Outcome<void> setAttachType(struct bpf_program& program, const std::string& wanted, const std::string& path) {
  const std::vector<std::string> names = namesOf(libbpf_bpf_attach_type_str);
  const auto type = numberOf<enum bpf_attach_type>(names, wanted);
  if (!type) {
    return invalidParameter(path, "there is no attach type '" + wanted + "'" + didYouMean(nearMisses(wanted, names)));
  }
  bpf_program__set_expected_attach_type(&program, *type);
  return {};
}

Outcome<void> setFlags(struct bpf_program& program, const nlohmann::json& flags, const std::string& path) {
  if (flags < 0 || flags > UINT32_MAX) {
    return invalidParameter(path, "flags are between 0 and 4294967295, not " + flags.dump());
  }
  bpf_program__set_flags(&program, bpf_program__flags(&program) | flags.get<std::uint32_t>());
  return {};
}

Outcome<void> bindToInterface(struct bpf_program& program, const std::string& interface, const std::string& path) {
  const unsigned index = interface.find('\0') == std::string::npos ? ::if_nametoindex(interface.c_str()) : 0;
  if (index == 0) {
    return invalidParameter(path, "there is no network interface '" + interface + "'");
  }
  bpf_program__set_ifindex(&program, index);
  bpf_program__set_flags(&program, bpf_program__flags(&program) | BPF_F_XDP_DEV_BOUND_ONLY);
  return {};
}

} // namespace

Outcome<void> setProgramOptions(struct bpf_program& program, const nlohmann::json& request, const std::string& path) {
  if (const auto enabled = request.find("enabled"); enabled != request.end()) {
    bpf_program__set_autoload(&program, enabled->get<bool>());
  }
  // The type stands for an attach type, too, so it comes first.
  const auto text = [&](const char* field, Outcome<void> (*set)(struct bpf_program&, const std::string&,
                                                                const std::string&)) -> Outcome<void> {
    const auto value = request.find(field);
    return value == request.end() ? Outcome<void>{}
                                  : set(program, value->get_ref<const std::string&>(), path + "." + field);
  };
  if (auto done = text("type", setType); !done) {
    return done;
  }
  if (auto done = text("expectedAttachType", setAttachType); !done) {
    return done;
  }
  if (const auto flags = request.find("flags"); flags != request.end()) {
    if (auto done = setFlags(program, *flags, path + ".flags"); !done) {
      return done;
    }
  }
  return text("boundToInterface", bindToInterface);
}

std::string attachTypeName(const struct bpf_program& program) {
  const auto type = bpf_program__expected_attach_type(&program);
  const char* name = libbpf_bpf_attach_type_str(type);
  return name == nullptr ? std::to_string(type) : name;
}

void setTypes(struct bpf_program& program, const std::string& type, const std::string& attachType) {
  if (const auto number = numberOf<enum bpf_prog_type>(namesOf(libbpf_bpf_prog_type_str), type)) {
    bpf_program__set_type(&program, *number);
  }
  if (const auto number = numberOf<enum bpf_attach_type>(namesOf(libbpf_bpf_attach_type_str), attachType)) {
    bpf_program__set_expected_attach_type(&program, *number);
  }
}

} // namespace btfd::loader
