#include "config/detail/keys.h"

#include "base/near_misses.h"
#include "config/detail/document.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <utility>

#include <limits.h>
#include <sys/un.h>

namespace btfd::config::detail {
namespace {

using nlohmann::json;
using Complaint = std::optional<std::string>;

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;
constexpr std::uint64_t kDayMs = 24ULL * 60 * 60 * 1000;

/// What was found, for a message: short, and valid text whatever the file holds.
std::string describe(const json& value) {
  constexpr std::size_t kLongest = 60;
  if (value.is_object()) {
    return "an object";
  }
  if (value.is_array()) {
    return "a list";
  }
  const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

std::string mustBe(const std::string& what, const json& value) {
  return "must be " + what + ", not " + describe(value);
}

Complaint readInteger(const json& value, std::uint64_t minimum, std::uint64_t maximum, std::size_t& target) {
  const auto* number = value.get_ptr<const json::number_unsigned_t*>();
  if (number == nullptr || *number < minimum || *number > maximum) {
    return mustBe("a whole number from " + std::to_string(minimum) + " to " + std::to_string(maximum), value);
  }
  target = *number;
  return {};
}

Complaint readMilliseconds(const json& value, std::chrono::milliseconds& target) {
  std::size_t count = 0;
  // A day is far past any verification; it keeps sums of times from overflowing.
  if (auto complaint = readInteger(value, 1, kDayMs, count)) {
    return *complaint + " (milliseconds)";
  }
  target = std::chrono::milliseconds(count);
  return {};
}

Complaint readBool(const json& value, bool& target) {
  const auto* flag = value.get_ptr<const json::boolean_t*>();
  if (flag == nullptr) {
    return mustBe("true or false", value);
  }
  target = *flag;
  return {};
}

bool isAbsolutePath(std::string_view path) {
  return path.starts_with('/') && path.find('\0') == path.npos;
}

/// `longest`: in bytes, without the NUL at the end.
Complaint readPath(const json& value, std::size_t longest, std::string& target) {
  const auto* path = value.get_ptr<const json::string_t*>();
  if (path == nullptr || !isAbsolutePath(*path)) {
    return mustBe("an absolute path in quotes", value);
  }
  if (path->size() > longest) {
    return "is too long: " + std::to_string(path->size()) + " bytes, at most " + std::to_string(longest) +
           " are possible";
  }
  target = *path;
  return {};
}

Complaint readFilePath(const json& value, std::string& target) {
  return readPath(value, PATH_MAX - 1, target);
}

Complaint readSocketPath(const json& value, std::string& target) {
  return readPath(value, sizeof(sockaddr_un::sun_path) - 1, target);
}

Complaint readOptionalPath(const json& value, std::string& target) {
  if (const auto* path = value.get_ptr<const json::string_t*>(); path != nullptr && path->empty()) {
    target.clear();
    return {};
  }
  if (auto complaint = readFilePath(value, target)) {
    return *complaint + R"( ("" for the kernel's own))";
  }
  return {};
}

/// As useradd(8) takes them: letters, digits, "_", "-", "."; no digit or "-" first; at most 31.
bool isGroupName(std::string_view name) {
  const auto isLetter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto isOther = [](char c) { return (c >= '0' && c <= '9') || c == '-' || c == '.'; };
  return !name.empty() && name.size() <= 31 && isLetter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return isLetter(c) || isOther(c); });
}

Complaint readGroup(const json& value, std::string& target) {
  const auto* name = value.get_ptr<const json::string_t*>();
  if (name == nullptr || !(name->empty() || isGroupName(*name))) {
    return mustBe(R"(the name of a group, or "" for the group that the daemon runs as)", value);
  }
  target = *name;
  return {};
}

Complaint readMode(const json& value, unsigned& target) {
  const auto* text = value.get_ptr<const json::string_t*>();
  const bool wellFormed = text != nullptr && (text->size() == 3 || (text->size() == 4 && text->front() == '0')) &&
                          std::ranges::all_of(*text, [](char c) { return c >= '0' && c <= '7'; });
  if (!wellFormed) {
    return mustBe(R"(permission bits in octal, in quotes, as in "0660")", value);
  }
  std::from_chars(text->data(), text->data() + text->size(), target, 8);
  return {};
}

/// One of the names in `choices`; `put` takes the one that was found.
template <typename T, std::size_t Count>
Complaint readChoice(const json& value, const std::array<std::pair<std::string_view, T>, Count>& choices, T& target) {
  std::string names;
  const auto* text = value.get_ptr<const json::string_t*>();
  for (const auto& [name, choice] : choices) {
    if (text != nullptr && *text == name) {
      target = choice;
      return {};
    }
    names += (names.empty() ? "\"" : ", \"") + std::string(name) + '"';
  }
  return mustBe("one of " + names, value);
}

Complaint readLoad(const json& value, KernelBtfLoad& target) {
  static constexpr std::array<std::pair<std::string_view, KernelBtfLoad>, 2> kChoices{
      {{"startup", KernelBtfLoad::Startup}, {"on-demand", KernelBtfLoad::OnDemand}}};
  return readChoice(value, kChoices, target);
}

Complaint readLogTarget(const json& value, LogTarget& target) {
  static constexpr std::array<std::pair<std::string_view, LogTarget>, 3> kChoices{
      {{"auto", LogTarget::Auto}, {"stderr", LogTarget::Stderr}, {"journal", LogTarget::Journal}}};
  return readChoice(value, kChoices, target);
}

Complaint readLogLevel(const json& value, std::string& target) {
  // SPDLOG_LEVEL_NAMES; spdlog itself takes any other name for "off".
  static const std::array<std::pair<std::string_view, std::string>, 7> kChoices{{{"trace", "trace"},
                                                                                 {"debug", "debug"},
                                                                                 {"info", "info"},
                                                                                 {"warning", "warning"},
                                                                                 {"error", "error"},
                                                                                 {"critical", "critical"},
                                                                                 {"off", "off"}}};
  return readChoice(value, kChoices, target);
}

constexpr std::array kKeys{
    Key{"socket", "path", [](const json& v, Config& c) { return readSocketPath(v, c.socket.path); }},
    Key{"socket", "group", [](const json& v, Config& c) { return readGroup(v, c.socket.group); }},
    Key{"socket", "mode", [](const json& v, Config& c) { return readMode(v, c.socket.mode); }},
    Key{"", "stateDirectory", [](const json& v, Config& c) { return readFilePath(v, c.stateDirectory); }},
    Key{"", "bpffs", [](const json& v, Config& c) { return readFilePath(v, c.bpffs); }},
    Key{"kernelBtf", "load", [](const json& v, Config& c) { return readLoad(v, c.kernelBtf.load); }},
    Key{"kernelBtf", "path", [](const json& v, Config& c) { return readOptionalPath(v, c.kernelBtf.path); }},
    Key{"kernelBtf", "modules", [](const json& v, Config& c) { return readBool(v, c.kernelBtf.modules); }},
    // Each worker is a process; machines with more cores gain nothing, since the kernel serialises much of a load.
    Key{"workers", "count", [](const json& v, Config& c) { return readInteger(v, 0, 1024, c.workers.count); }},
    // 0: none is kept.
    Key{"cache", "maxBytes",
        [](const json& v, Config& c) { return readInteger(v, 0, 16 * 1024 * kMiB, c.cache.maxBytes); }},
    Key{"limits", "deadlineMs", [](const json& v, Config& c) { return readMilliseconds(v, c.limits.deadline); }},
    Key{"limits", "maximumDeadlineMs",
        [](const json& v, Config& c) { return readMilliseconds(v, c.limits.maximumDeadline); }},
    // An ELF file of less than a page holds no program; past 1 GiB offsets of BTF (32 bits) come near their end.
    Key{"limits", "objectBytes",
        [](const json& v, Config& c) { return readInteger(v, 4 * kKiB, 1024 * kMiB, c.limits.objectBytes); }},
    Key{"limits", "queuedRequests",
        [](const json& v, Config& c) { return readInteger(v, 1, 65536, c.limits.queuedRequests); }},
    // Each is a descriptor, of the 524288 that btfd.service allows for them and for what is held.
    Key{"limits", "connections",
        [](const json& v, Config& c) { return readInteger(v, 1, 65536, c.limits.connections); }},
    Key{"limits", "connectionsPerUser",
        [](const json& v, Config& c) { return readInteger(v, 1, 65536, c.limits.connectionsPerUser); }},
    // The kernel refuses a log buffer of more than about 1 GiB; more than 8 MiB fits no message.
    Key{"limits", "verifierLogBytes",
        [](const json& v, Config& c) { return readInteger(v, 64 * kKiB, 8 * kMiB, c.limits.verifierLogBytes); }},
    // The least carries the longest description of an object (1 MiB); clients with sd-varlink take no more than 16 MiB.
    Key{"limits", "messageBytes",
        [](const json& v, Config& c) { return readInteger(v, 2 * kMiB, 16 * kMiB, c.limits.messageBytes); }},
    Key{"log", "level", [](const json& v, Config& c) { return readLogLevel(v, c.log.level); }},
    Key{"log", "target", [](const json& v, Config& c) { return readLogTarget(v, c.log.target); }},
};

/// Lower case, without "_" and "-": deadline_ms and deadlineMS are the same mistake.
std::string folded(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c != '_' && c != '-') {
      result += (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return result;
}

/// A name that could stand for an unknown one: a key, or (with an empty `section`) a section's name.
struct Candidate {
  std::string_view section;
  std::string_view name;

  bool operator==(const Candidate&) const = default;
};

std::vector<Candidate> candidates() {
  std::vector<Candidate> all;
  for (const Key& key : kKeys) {
    if (const Candidate section{"", key.section};
        !key.section.empty() && std::ranges::find(all, section) == all.end()) {
      all.push_back(section);
    }
    all.push_back({key.section, key.name});
  }
  return all;
}

std::optional<Candidate> nearest(std::string_view section, std::string_view name) {
  constexpr std::size_t kLongestName = 64; // no key is near a longer one, and the distance takes time
  if (name.size() > kLongestName) {
    return {};
  }
  const std::string wanted = folded(name);
  const std::string wantedPath = folded(std::string(section) + "." + std::string(name));
  std::optional<Candidate> best;
  // At most a third of the name may differ, and in a name that is all that there is to go by, two characters.
  std::size_t bestCost = 2 * std::max<std::size_t>(2, wanted.size() / 3) + 1;
  for (const Candidate& candidate : candidates()) {
    const bool elsewhere = candidate.section != section;
    const std::size_t distance = editDistance(wanted, folded(candidate.name));
    // "limits.deadlineMs" as one name at the top.
    const bool isItsPath = folded(name) == folded(keyPath(candidate.section, candidate.name));
    const std::size_t cost = isItsPath ? 1 : 2 * distance + (elsewhere ? 1 : 0);
    if (cost < bestCost) {
      bestCost = cost;
      best = candidate;
    }
  }
  return best;
}

} // namespace

std::span<const Key> keys() {
  return kKeys;
}

const Key* findKey(std::string_view section, std::string_view name) {
  const auto found = std::ranges::find_if(kKeys, [&](const Key& k) { return k.section == section && k.name == name; });
  return found == kKeys.end() ? nullptr : &*found;
}

bool isSection(std::string_view section) {
  return !section.empty() && std::ranges::any_of(kKeys, [&](const Key& k) { return k.section == section; });
}

std::string unknownKey(std::string_view section, std::string_view name) {
  if (const auto near = nearest(section, name)) {
    std::string message = "is unknown; did you mean \"" + std::string(near->name) + '"';
    if (near->section != section) {
      message += near->section.empty() ? " at the top" : " in \"" + std::string(near->section) + '"';
    }
    return message + "?";
  }
  std::string known;
  for (const Candidate& candidate : candidates()) {
    if (candidate.section == section) {
      known += (known.empty() ? "" : ", ") + std::string(candidate.name);
    }
  }
  return "is unknown; what can stand there: " + known;
}

} // namespace btfd::config::detail
