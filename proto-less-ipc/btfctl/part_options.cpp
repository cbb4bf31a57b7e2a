#include "btfctl/part_options.h"

#include "btfctl/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace btfd::btfctl {
namespace {

using nlohmann::json;

/// Reads the value of one field.
using ValueReader = Result<json> (*)(std::string_view value);

struct Field {
  std::string_view name;
  std::string_view value;
  std::string_view meaning;
  ValueReader read;
};

/// A number of 32 bits in decimal or, behind 0x, in hexadecimal, as bpf(2) has them.
Result<json> readNumber(std::string_view value) {
  const bool hexadecimal = value.starts_with("0x");
  const std::string_view digits = value.substr(hexadecimal ? 2 : 0);
  std::uint32_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, hexadecimal ? 16 : 10);
  if (error != std::errc{} || end != digits.data() + digits.size()) {
    return fail("must be a number from 0 to 4294967295, such as 42 or 0x2a");
  }
  return json(number);
}

Result<json> readText(std::string_view value) {
  return json(std::string(value));
}

/// OBJECT/MAP, by the object's id.
Result<json> readMapOfObject(std::string_view value) {
  const std::size_t slash = value.find('/');
  const std::string_view id = value.substr(0, slash);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  if (slash == std::string_view::npos || slash + 1 == value.size() || error != std::errc{} ||
      end != id.data() + id.size() || number < 0) {
    return fail("must be an object's id and the name of its map, such as 7/state");
  }
  return json{{"objectId", number}, {"map", std::string(value.substr(slash + 1))}};
}

constexpr std::array kMapFields{
    Field{"type", "TYPE", "hash, lru_hash, percpu_array...", readText},
    Field{"keySize", "N", "bytes of a key", readNumber},
    Field{"valueSize", "N", "bytes of a value; of .data and the like, to let the last array grow", readNumber},
    Field{"maxEntries", "N", "number of entries, as --max-entries", readNumber},
    Field{"flags", "BITS", "BPF_F_... of BPF_MAP_CREATE", readNumber},
    Field{"numaNode", "N", "the NUMA node for its memory", readNumber},
    Field{"innerMaxEntries", "N", "number of entries of the maps in a map of maps", readNumber},
    Field{"innerMap", "OBJECT/MAP", "a map such as those in a map of maps: of a loaded object of yours",
          readMapOfObject},
    Field{"pinPath", "NAME", "pin it, or use what is pinned, under this name among your pins", readText},
    Field{"reuseMap", "OBJECT/MAP", "use this map of a loaded object of yours", readMapOfObject},
};

constexpr std::array kProgramFields{
    Field{"type", "TYPE|SECTION", "cgroup_skb, or as SEC(\"cgroup/connect6\") has it", readText},
    Field{"expectedAttachType", "TYPE", "xdp_cpumap, cgroup_inet4_connect...", readText},
    Field{"flags", "BITS", "BPF_F_... of BPF_PROG_LOAD", readNumber},
    Field{"verifierLogLevel", "BITS", "as --log-level, for this program", readNumber},
    Field{"boundToInterface", "NAME", "network interface whose driver an XDP program asks for metadata", readText},
};

Result<json> parse(std::string_view text, std::span<const Field> fields) {
  json request = json::object();
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const std::size_t colon = part.find(':');
    const std::string name(part.substr(0, colon));
    const auto field = std::ranges::find(fields, name, &Field::name);
    if (field == fields.end()) {
      std::vector<std::string> names;
      std::ranges::transform(fields, std::back_inserter(names),
                             [](const Field& each) { return std::string(each.name); });
      return fail("there is no field '" + name + "'" + didYouMean(name, names) + " (fields: " + joinedWithOr(names) +
                  ")");
    }
    if (colon == std::string_view::npos || colon + 1 == part.size()) {
      return fail("field '" + name + "' has no value: write " + name + ":" + std::string(field->value));
    }
    if (request.contains(name)) {
      return fail("field '" + name + "' is given twice");
    }
    auto value = field->read(part.substr(colon + 1));
    if (!value) {
      return std::unexpected(std::move(value).error().within(name));
    }
    request[name] = std::move(*value);
  }
  return request;
}

std::string help(std::span<const Field> fields) {
  constexpr std::size_t kMeaningColumn = 30;
  std::string text;
  for (const Field& field : fields) {
    const std::string left = "  " + std::string(field.name) + ":" + std::string(field.value);
    text += left + std::string(std::max(kMeaningColumn, left.size() + 1) - left.size(), ' ') +
            std::string(field.meaning) + "\n";
  }
  return text;
}

} // namespace

Result<json> parseMapOptions(std::string_view text) {
  return parse(text, kMapFields);
}

Result<json> parseProgramOptions(std::string_view text) {
  return parse(text, kProgramFields);
}

std::string partOptionsHelp() {
  return "--map MAP=FIELD:VALUE,... with these fields:\n" + help(kMapFields) +
         "--program PROGRAM=FIELD:VALUE,... with these fields:\n" + help(kProgramFields);
}

} // namespace btfd::btfctl
