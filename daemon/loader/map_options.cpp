#include "map_options.h"

#include "base/near_misses.h"
#include "load_diagnosis.h"
#include "object/opened_object.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace btfd::loader {

namespace {

/// Longer than any name that a map is pinned under; bpffs takes names up to 255 bytes.
constexpr std::size_t kLongestPin = 64;

/// What an existing map may differ in from what the object declares, unless the request says it, too.
constexpr std::array kFieldsOfForm{"type", "keySize", "valueSize", "maxEntries", "flags"};

bool isPinPath(const std::string& path) {
  return !path.empty() && path.size() <= kLongestPin && std::ranges::all_of(path, [](unsigned char character) {
    return std::isalnum(character) != 0 || character == '_' || character == '-';
  });
}

/// The types' names, as libbpf has them, by number.
std::vector<std::string> typeNames() {
  std::vector<std::string> names;
  for (std::uint32_t type = 0; const char* name = object::mapTypeName(type); ++type) {
    names.emplace_back(name);
  }
  return names;
}

bool isOfMaps(std::uint32_t type) {
  return type == BPF_MAP_TYPE_ARRAY_OF_MAPS || type == BPF_MAP_TYPE_HASH_OF_MAPS;
}

/// Maps of these types have more in the object than a definition: what libbpf keeps of it would be read as something
/// else if the type changed.
bool isBound(std::uint32_t type) {
  return type == BPF_MAP_TYPE_PROG_ARRAY || type == BPF_MAP_TYPE_STRUCT_OPS || type == BPF_MAP_TYPE_ARENA;
}

/// libbpf maps the memory of global variables with the sizes that the map has in the end: it would write beyond what it
/// has if these changed behind its back.
std::string whyUnchangeable(const struct bpf_map& map) {
  if (bpf_map__is_internal(&map)) {
    return "it holds global variables of the object";
  }
  return object::mapType(map) == BPF_MAP_TYPE_STRUCT_OPS ? "its form is the kernel's (struct_ops)" : "";
}

/// Global variables at the arena's end take this many bytes of it.
std::size_t variableBytes(const struct bpf_map& map) {
  std::size_t size = 0;
  return bpf_map__initial_value(&map, &size) == nullptr ? 0 : size;
}

} // namespace

/// What is asked of one map.
struct MapOptions::Change {
  std::string name;
  struct bpf_map& map;
  const nlohmann::json& request;

  [[nodiscard]] bool has(const char* field) const { return request.contains(field); }

  [[nodiscard]] std::string path(const char* field) const { return "maps." + name + "." + field; }

  [[nodiscard]] std::unexpected<Failure> invalid(const char* field, const std::string& why) const {
    return invalidParameter(path(field), why);
  }

  /// The field `field`, if it is there: `what` is for the error.
  [[nodiscard]] Outcome<std::optional<std::uint32_t>> number(const char* field, const std::string& what) const {
    const auto value = request.find(field);
    if (value == request.end()) {
      return std::nullopt;
    }
    if (!value->is_number_integer() || *value < 0 || *value > std::numeric_limits<std::uint32_t>::max()) {
      return invalid(field, what + " is between 0 and 4294967295, not " + value->dump());
    }
    return value->get<std::uint32_t>();
  }

  /// Sets what `field` says, if it is there, by libbpf's `setter`.
  Outcome<void> set(const char* field, const std::string& what, int (*setter)(struct bpf_map*, __u32)) const {
    const auto value = number(field, what);
    if (!value || !*value) {
      return value ? Outcome<void>{} : std::unexpected(value.error());
    }
    if (const int error = setter(&map, **value); error < 0) {
      return invalid(field, what + " of map '" + name + "' cannot be set: " + std::strerror(-error));
    }
    return {};
  }
};

Outcome<void> MapOptions::apply(const nlohmann::json& requests) {
  for (const auto& [name, request] : requests.items()) {
    const auto map = maps_.find(name);
    if (!map) {
      return std::unexpected(map.error());
    }
    const Change change{.name = name, .map = **map, .request = request};
    if (auto done = setType(change); !done) {
      return done;
    }
    if (auto done = setSizes(change); !done) {
      return done;
    }
    if (auto done = setPlacement(change); !done) {
      return done;
    }
    if (auto done = setInnerMap(change); !done) {
      return done;
    }
    if (auto done = setPin(change); !done) {
      return done;
    }
    if (auto done = reuse(change); !done) {
      return done;
    }
  }
  return {};
}

Outcome<void> MapOptions::setType(const Change& change) const {
  const auto wanted = change.request.find("type");
  if (wanted == change.request.end()) {
    return {};
  }
  const auto& name = wanted->get_ref<const std::string&>();
  const std::vector<std::string> known = typeNames();
  const auto found = std::ranges::find(known, name);
  if (found == known.end() || found == known.begin()) { // the first is "unspec"
    return change.invalid("type", "there is no map type '" + name + "'" + didYouMean(nearMisses(name, known)));
  }
  const auto type = static_cast<std::uint32_t>(found - known.begin());
  const std::uint32_t declared = object::mapType(change.map);
  if (type == declared) {
    return {};
  }
  if (const std::string why = whyUnchangeable(change.map); !why.empty()) {
    return change.invalid("type", "the type of map '" + change.name + "' cannot be changed: " + why);
  }
  if (isBound(type) || isBound(declared) || isOfMaps(type) != isOfMaps(declared)) {
    return change.invalid("type", "map '" + change.name + "' of type " + known.at(declared) + " cannot become one of " +
                                      "type " + name + ": the object would have to declare it otherwise");
  }
  bpf_map__set_type(&change.map, static_cast<enum bpf_map_type>(type));
  return {};
}

Outcome<void> MapOptions::setSizes(const Change& change) const {
  const std::string why = whyUnchangeable(change.map);
  for (const char* field : {"keySize", "maxEntries", "flags"}) {
    if (!why.empty() && change.has(field)) {
      return change.invalid(field, "this of map '" + change.name + "' cannot be changed: " + why);
    }
  }
  if (auto done = change.set("keySize", "the size of keys", bpf_map__set_key_size); !done) {
    return done;
  }
  const auto valueSize = change.number("valueSize", "the size of values");
  if (!valueSize) {
    return std::unexpected(valueSize.error());
  }
  if (*valueSize && !why.empty() &&
      (change.name == ".kconfig" || object::mapType(change.map) == BPF_MAP_TYPE_STRUCT_OPS)) {
    return change.invalid("valueSize", "this of map '" + change.name + "' cannot be changed: " + why);
  }
  if (*valueSize && bpf_map__is_internal(&change.map) && **valueSize < bpf_map__value_size(&change.map)) {
    return change.invalid("valueSize", "map '" + change.name + "' has global variables of " +
                                           std::to_string(bpf_map__value_size(&change.map)) +
                                           " bytes, so it cannot be smaller than that");
  }
  if (auto done = change.set("valueSize", "the size of values", bpf_map__set_value_size); !done) {
    return done;
  }
  const auto entries = change.number("maxEntries", "the number of entries");
  if (entries && *entries && object::mapType(change.map) == BPF_MAP_TYPE_ARENA &&
      std::uint64_t{**entries} * static_cast<std::uint64_t>(::getpagesize()) < variableBytes(change.map)) {
    return change.invalid("maxEntries", "arena '" + change.name + "' has global variables of " +
                                            std::to_string(variableBytes(change.map)) +
                                            " bytes, which so few pages do not hold");
  }
  if (auto done = change.set("maxEntries", "the number of entries", bpf_map__set_max_entries); !done) {
    return done;
  }
  return change.set("flags", "the value of flags", bpf_map__set_map_flags);
}

Outcome<void> MapOptions::setPlacement(const Change& change) const {
  if (!change.has("numaNode")) {
    return {};
  }
  if (auto done = change.set("numaNode", "a NUMA node's number", bpf_map__set_numa_node); !done) {
    return done;
  }
  // The kernel looks at the node only with this flag.
  bpf_map__set_map_flags(&change.map, bpf_map__map_flags(&change.map) | BPF_F_NUMA_NODE);
  return {};
}

/// The map that field `byDescriptor` or, found by the front, `byName` is about; no descriptor if neither is there.
Outcome<BorrowedFd> MapOptions::given(const Change& change, const char* byDescriptor, const char* byName) {
  const auto index = change.request.find(byDescriptor);
  if (index != change.request.end() && change.has(byName)) {
    return change.invalid(byDescriptor, "cannot be there together with " + std::string(byName));
  }
  if (index != change.request.end()) {
    return descriptors_.take(*index, change.path(byDescriptor));
  }
  return change.has(byName) ? descriptors_.held(held_.at(change.name).at(byName)) : BorrowedFd(-1);
}

Outcome<void> MapOptions::setInnerMap(const Change& change) {
  const auto inner = given(change, "innerMapFileDescriptor", "innerMap");
  if (!inner) {
    return std::unexpected(inner.error());
  }
  const bool byMap = inner->get() >= 0;
  const char* field = !byMap                                 ? "innerMaxEntries"
                      : change.has("innerMapFileDescriptor") ? "innerMapFileDescriptor"
                                                             : "innerMap";
  if (!byMap && !change.has(field)) {
    return {};
  }
  if (!isOfMaps(object::mapType(change.map))) {
    return change.invalid(field, "map '" + change.name + "' is no map of maps");
  }
  if (byMap) {
    if (change.has("innerMaxEntries")) {
      return change.invalid("innerMaxEntries", "cannot be there together with " + std::string(field));
    }
    if (const int error = bpf_map__set_inner_map_fd(&change.map, inner->get()); error < 0) {
      return change.invalid(field, "map '" + change.name + "' cannot have maps like this: " + std::strerror(-error));
    }
    return {};
  }
  struct bpf_map* form = bpf_map__inner_map(&change.map);
  if (form == nullptr) {
    return change.invalid(field, "the object does not say what maps are in map '" + change.name +
                                     "'; give one as innerMap or innerMapFileDescriptor");
  }
  return setInnerEntries(change, *form);
}

/// Libbpf cannot change what it has of the maps in a map (bpf_map__set_max_entries looks at their object, which they
/// have none of), so one is made here.
Outcome<void> MapOptions::setInnerEntries(const Change& change, const struct bpf_map& form) {
  constexpr const char* kField = "innerMaxEntries";
  const auto entries = change.number(kField, "the number of entries");
  if (!entries) {
    return std::unexpected(entries.error());
  }
  LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = bpf_map__map_flags(&form),
              .map_extra = bpf_map__map_extra(&form), .numa_node = bpf_map__numa_node(&form));
  UniqueFd made(bpf_map_create(bpf_map__type(&form), nullptr, bpf_map__key_size(&form), bpf_map__value_size(&form),
                               **entries, &options));
  const int error = made ? bpf_map__set_inner_map_fd(&change.map, made.get()) : -errno;
  if (error < 0) {
    return change.invalid(kField, "map '" + change.name + "' cannot have maps of " + std::to_string(**entries) +
                                      " entries: " + std::strerror(-error));
  }
  made_.push_back(std::move(made));
  return {};
}

Outcome<void> MapOptions::setPin(const Change& change) const {
  const auto path = change.request.find("pinPath");
  if (path == change.request.end()) {
    return {};
  }
  const auto& text = path->get_ref<const std::string&>();
  if (text.empty()) {
    bpf_map__set_pin_path(&change.map, nullptr);
    return {};
  }
  if (!isPinPath(text)) {
    return change.invalid("pinPath", "is a name in the directory of your pins, of 1 to " + std::to_string(kLongestPin) +
                                         " letters, digits, '_' and '-'; a map that is pinned elsewhere can be given "
                                         "as reuseFileDescriptor");
  }
  bpf_map__set_pin_path(&change.map, (pinDirectory_ + "/" + text).c_str());
  return {};
}

Outcome<void> MapOptions::reuse(const Change& change) {
  const auto existing = given(change, "reuseFileDescriptor", "reuseMap");
  if (!existing) {
    return std::unexpected(existing.error());
  }
  if (existing->get() < 0) {
    return {};
  }
  const char* field = change.has("reuseMap") ? "reuseMap" : "reuseFileDescriptor";
  if (change.has("pinPath") && !change.request.at("pinPath").get_ref<const std::string&>().empty()) {
    return change.invalid("pinPath", "cannot be there together with " + std::string(field) +
                                         ": a map that is pinned there would be taken instead");
  }
  struct bpf_map_info info{};
  __u32 length = sizeof(info);
  if (bpf_map_get_info_by_fd(existing->get(), &info, &length) < 0) {
    return change.invalid(field, "the descriptor is no BPF map");
  }
  const bool asAsked = std::ranges::any_of(kFieldsOfForm, [&](const char* each) { return change.has(each); });
  const std::string difference =
      asAsked || bpf_map__is_internal(&change.map) ? formDifference(change.map, info) : differenceTo(change.map, info);
  if (!difference.empty()) {
    return change.invalid(field, "map '" + change.name + "' cannot be this one: " + difference);
  }
  bpf_map__set_pin_path(&change.map, nullptr); // or libbpf would prefer what is pinned there
  if (const int error = bpf_map__reuse_fd(&change.map, existing->get()); error < 0) {
    return change.invalid(field, "map '" + change.name + "' cannot be this one: " + std::strerror(-error));
  }
  return {};
}

} // namespace btfd::loader
