#include "btfctl/target.h"

#include "btfctl/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace btfd::btfctl {
namespace {

using nlohmann::json;

/// Reads the value of one key.
using ValueReader = Result<json> (*)(std::string_view value);

struct Key {
  std::string_view name;
  std::string_view value;
  std::string_view meaning;
  ValueReader read;
};

/// A number in decimal or, behind 0x, in hexadecimal. Varlink's integers are signed and have 64 bits.
Result<json> readNumber(std::string_view value) {
  const bool hexadecimal = value.starts_with("0x");
  const std::string_view digits = value.substr(hexadecimal ? 2 : 0);
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, hexadecimal ? 16 : 10);
  if (error == std::errc::invalid_argument || end != digits.data() + digits.size()) {
    return fail("must be a number that is not negative, such as 42 or 0x2a");
  }
  if (error != std::errc{} || number > std::numeric_limits<std::int64_t>::max()) {
    return fail("is larger than 2^63-1");
  }
  return json(number);
}

/// The same, or a negative one.
Result<json> readSigned(std::string_view value) {
  if (!value.starts_with('-')) {
    return readNumber(value);
  }
  auto number = readNumber(value.substr(1));
  return number ? Result<json>(json(-number->get<std::int64_t>())) : number;
}

Result<json> readTrue(std::string_view value) {
  return value == "true" ? Result<json>(json(true)) : fail("can only be true");
}

Result<json> readText(std::string_view value) {
  return json(std::string(value));
}

Result<json> readPath(std::string_view value) {
  std::error_code error;
  const auto path = std::filesystem::absolute(std::filesystem::path(value), error);
  return error ? Result<json>(fail("cannot be made absolute: " + error.message())) : json(path.string());
}

/// What has no slash is a library or program that libbpf looks for in the usual folders.
Result<json> readBinary(std::string_view value) {
  return value.contains('/') ? readPath(value) : readText(value);
}

Result<json> readNetworkNamespace(std::string_view value) {
  return value.contains('/') ? readPath(value) : json("/run/netns/" + std::string(value));
}

Result<json> readTracepoint(std::string_view value) {
  if (value.starts_with('/') || value.ends_with('/')) {
    return fail("must be a name, or category/name as in sched/sched_switch");
  }
  return readText(value);
}

Result<json> readXdpMode(std::string_view value) {
  const std::vector<std::string> modes{"native", "generic", "offload"};
  if (std::ranges::find(modes, value) == modes.end()) {
    return fail("must be " + joinedWithOr(modes) + didYouMean(value, modes));
  }
  return readText(value);
}

Result<json> readDirection(std::string_view value) {
  const std::vector<std::string> directions{"ingress", "egress", "primary", "peer"};
  if (std::ranges::find(directions, value) == directions.end()) {
    return fail("must be " + joinedWithOr(directions) + didYouMean(value, directions));
  }
  return readText(value);
}

/// "all", "link/12", "kernelLink/34" or "kernelProgram/56".
Result<json> readAnchor(std::string_view value) {
  if (value == "all") {
    return json::object();
  }
  const std::size_t slash = value.find('/');
  const std::string kind(value.substr(0, slash));
  if (slash == std::string_view::npos || (kind != "link" && kind != "kernelLink" && kind != "kernelProgram")) {
    return fail("must be all, link/ID (btfd's), kernelLink/ID or kernelProgram/ID");
  }
  auto id = readNumber(value.substr(slash + 1));
  return id ? Result<json>(json{{kind + "Id", std::move(*id)}}) : id;
}

Result<json> readTcForm(std::string_view value) {
  const std::vector<std::string> forms{"tcx", "tc"};
  if (std::ranges::find(forms, value) == forms.end()) {
    return fail("must be " + joinedWithOr(forms));
  }
  return readText(value);
}

/// TYPE/EVENT, with the rate as @FREQUENCYhz or /PERIOD behind it.
Result<json> readPerfEvent(std::string_view value) {
  constexpr std::string_view kForm = "must be written as software/cpu-clock@99hz (99 samples a second) or "
                                     "hardware/cpu-cycles/1000000 (one sample in a million events)";
  const std::size_t slash = value.find('/');
  const std::string type(value.substr(0, slash));
  if (slash == std::string_view::npos || (type != "software" && type != "hardware")) {
    return fail(std::string(kForm));
  }
  const std::string_view rest = value.substr(slash + 1);
  const std::size_t separator = rest.find_first_of("@/");
  if (separator == 0 || separator == std::string_view::npos) {
    return fail(std::string(kForm));
  }
  json event{{"type", type}, {"event", std::string(rest.substr(0, separator))}};

  const bool isFrequency = rest[separator] == '@';
  std::string_view rate = rest.substr(separator + 1);
  if (isFrequency) {
    if (!rate.ends_with("hz") && !rate.ends_with("Hz")) {
      return fail(std::string(kForm));
    }
    rate.remove_suffix(2);
  }
  auto number = readNumber(rate);
  if (!number || *number == 0) {
    return fail(std::string(kForm));
  }
  event[isFrequency ? "frequency" : "period"] = std::move(*number);
  return event;
}

/// Several of what one reader reads, with '+' between them.
template <ValueReader Read>
Result<json> readSeveral(std::string_view value) {
  json several = json::array();
  for (std::size_t at = 0; at <= value.size();) {
    const std::size_t plus = std::min(value.find('+', at), value.size());
    auto one = Read(value.substr(at, plus - at));
    if (!one) {
      return one;
    }
    several.push_back(std::move(*one));
    at = plus + 1;
  }
  return several;
}

Result<json> readCgroupOrder(std::string_view value) {
  const std::vector<std::string> orders{"self", "descendants", "descendantsFirst", "ancestors"};
  if (std::ranges::find(orders, value) == orders.end()) {
    return fail("must be " + joinedWithOr(orders) + didYouMean(value, orders));
  }
  return readText(value);
}

constexpr std::array kKeys{
    Key{"tracepoint", "NAME", "raw tracepoint by name, tracepoint as category/name", readTracepoint},
    Key{"interface", "NAME", "network interface for xdp, tcx and tc", readText},
    Key{"direction", "WAY", "ingress or egress, for SEC(\"tc\"); primary or peer of netkit", readDirection},
    Key{"before", "WHICH", "for tcx, netkit, cgroup: all, link/ID, kernelLink/ID or kernelProgram/ID", readAnchor},
    Key{"after", "WHICH", "likewise", readAnchor},
    Key{"tcForm", "FORM", "tcx (a link, Linux 6.6) or tc (a filter on clsact)", readTcForm},
    Key{"priority", "N", "of a tc filter or for netfilter; the lower, the earlier", readSigned},
    Key{"handle", "N", "of a tc filter", readNumber},
    Key{"hook", "HOOK", "for netfilter: prerouting, input, forward, output, postrouting", readText},
    Key{"protocolFamily", "FAMILY", "for netfilter: ipv4 or ipv6", readText},
    Key{"defragment", "true", "for netfilter: put fragments together before", readTrue},
    Key{"xdpMode", "MODE", "native, generic or offload", readXdpMode},
    Key{"cgroup", "PATH", "directory of a cgroup v2", readPath},
    Key{"networkNamespace", "NAME|PATH", "for xdp, tcx, tc, sk_lookup and flow_dissector; a name is one of /run/netns",
        readNetworkNamespace},
    Key{"networkNamespacePid", "PID", "the network namespace of a process", readNumber},
    Key{"map", "NAME", "sockmap or sockhash of the object, for sk_msg and sk_skb", readText},
    Key{"cgroupOrder", "ORDER", "self, descendants, descendantsFirst or ancestors, for iter/cgroup", readCgroupOrder},
    Key{"pid", "N", "only this process, for iter/task..., perf, uprobe and usdt", readNumber},
    Key{"tid", "N", "only this thread, for iter/task...", readNumber},
    Key{"function", "NAME", "for kprobe (also module:function), uprobe and ksyscall", readText},
    Key{"functions", "NAME+NAME...", "several, for kprobe and uprobe", readSeveral<readText>},
    Key{"pattern", "PATTERN", "all that match, with * and ?", readText},
    Key{"binary", "NAME|PATH", "program or library, for uprobe and usdt", readBinary},
    Key{"rootOf", "PID", "look the binary up where this process sees files", readNumber},
    Key{"provider", "NAME", "of a USDT probe", readText},
    Key{"name", "NAME", "of a USDT probe", readText},
    Key{"offset", "N", "bytes from the function, or from the start of the binary", readNumber},
    Key{"cookie", "N", "what bpf_get_attach_cookie() returns", readNumber},
    Key{"cookies", "N+N...", "one for each of functions", readSeveral<readNumber>},
    Key{"perf", "EVENT", "software/cpu-clock@99hz or hardware/cpu-cycles/1000000", readPerfEvent},
    Key{"cpu", "N", "only this CPU, for perf", readNumber},
};

std::vector<std::string> keyNames() {
  std::vector<std::string> names;
  std::ranges::transform(kKeys, std::back_inserter(names), [](const Key& key) { return std::string(key.name); });
  return names;
}

/// Takes the next "key:value" off `text`, with backslashes resolved; commas separate.
std::string takePart(std::string_view& text) {
  std::string part;
  std::size_t at = 0;
  for (; at < text.size() && text[at] != ','; ++at) {
    if (text[at] == '\\' && at + 1 < text.size()) {
      ++at;
    }
    part += text[at];
  }
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

/// Adds one "key:value" to `target`.
Result<void> readPart(std::string_view part, json& target) {
  const std::size_t colon = part.find(':');
  const std::string name(part.substr(0, colon));
  const auto* key = std::ranges::find(kKeys, name, &Key::name);
  if (key == kKeys.end()) {
    const std::vector<std::string> names = keyNames();
    return fail("there is no key '" + name + "'" + didYouMean(name, names) + " (keys: " + joinedWithOr(names) + ")");
  }
  if (colon == std::string_view::npos || colon + 1 == part.size()) {
    return fail("key '" + name + "' has no value: write " + name + ":" + std::string(key->value));
  }
  if (target.contains(name)) {
    return fail("key '" + name + "' is given twice");
  }
  const std::string_view value = part.substr(colon + 1);
  auto read = key->read(value);
  if (!read) {
    return fail(name + " '" + std::string(value) + "' " + read.error().message);
  }
  target[name] = std::move(*read);
  return {};
}

/// Gives `perf` the name that it has in AttachTarget, and what limits it its place within.
Result<void> movePerfEvent(json& target) {
  if (!target.contains("perf")) {
    return target.contains("cpu") ? Result<void>(fail("key 'cpu' needs key 'perf'")) : Result<void>{};
  }
  json event = std::move(target["perf"]);
  target.erase("perf");
  for (const char* limit : {"cpu", "pid"}) {
    if (target.contains(limit)) {
      event[limit] = std::move(target[limit]);
      target.erase(limit);
    }
  }
  target["perfEvent"] = std::move(event);
  return {};
}

} // namespace

Result<json> parseTarget(std::string_view text) {
  json target = json::object();
  for (std::string_view rest = text; !rest.empty();) {
    if (auto read = readPart(takePart(rest), target); !read) {
      return std::unexpected(std::move(read).error().within("target '" + std::string(text) + "'"));
    }
  }
  if (auto moved = movePerfEvent(target); !moved) {
    return std::unexpected(std::move(moved).error().within("target '" + std::string(text) + "'"));
  }
  return target;
}

std::string targetHelp() {
  constexpr std::size_t kMeaningColumn = 30;
  std::string help = "TARGET is key:value,key:value with these keys:\n";
  for (const Key& key : kKeys) {
    const std::string left = "  " + std::string(key.name) + ":" + std::string(key.value);
    help += left + std::string(kMeaningColumn - left.size(), ' ') + std::string(key.meaning) + "\n";
  }
  return help;
}

} // namespace btfd::btfctl
