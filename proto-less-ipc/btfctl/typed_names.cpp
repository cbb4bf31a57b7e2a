#include "btfctl/typed_names.h"

#include <algorithm>
#include <array>
#include <optional>

namespace btfd::btfctl {
namespace {

struct Name {
  std::string_view field;
  std::string_view typed;
};

/// Fields that no name of the client's is part of.
constexpr std::array kFields{
    Name{"name", "--name"},
    Name{"labels", "labels (--label)"},
    Name{"deadlineMs", "--deadline"},
    Name{"verifierLogLevel", "--log-level"},
    Name{"objectFileDescriptor", "the object file"},
    Name{"object", "the object file"},
    Name{"kernelBtfFileDescriptor", "--kernel-btf"},
    Name{"objectId", "the object's id"},
    Name{"linkId", "the link's id"},
    Name{"program", "PROGRAM"},
};

/// Fields of an AttachTarget that TARGET has other keys for (movePerfEvent in target.cpp).
constexpr std::array kTargetFields{
    Name{"perfEvent", "perf"},
    Name{"perfEvent.cpu", "cpu"},
    Name{"perfEvent.pid", "pid"},
};

template <std::size_t kCount>
std::optional<std::string> find(const std::array<Name, kCount>& names, std::string_view field) {
  const auto* found = std::ranges::find(names, field, &Name::field);
  return found == names.end() ? std::nullopt : std::optional(std::string(found->typed));
}

std::string targetKey(std::string_view field) {
  if (field == "targetFileDescriptor") {
    return "target as descriptor, which only other clients can give (--disable leaves a program out)";
  }
  const std::string_view outer = field.substr(0, field.find('.'));
  if (const auto renamed = find(kTargetFields, field)) {
    return "target key '" + *renamed + "'";
  }
  return "target key '" + find(kTargetFields, outer).value_or(std::string(outer)) + "'";
}

/// What is between `prefix` and `suffix`, if `path` has both. Names of maps may have dots themselves.
std::optional<std::string> between(std::string_view path, std::string_view prefix, std::string_view suffix) {
  if (path.size() <= prefix.size() + suffix.size() || !path.starts_with(prefix) || !path.ends_with(suffix)) {
    return std::nullopt;
  }
  return std::string(path.substr(prefix.size(), path.size() - prefix.size() - suffix.size()));
}

/// For "programs.NAME" and what is in it.
std::string programOption(std::string_view path) {
  constexpr std::string_view kAttach = ".attach[";
  if (const auto program = between(path, "", ".attach")) {
    return "--attach " + *program;
  }
  if (const auto program = between(path, "", ".enabled")) {
    return "--enable or --disable " + *program;
  }
  const std::size_t attach = path.find(kAttach);
  if (const std::size_t dot = path.rfind('.'); attach == std::string_view::npos && dot != std::string_view::npos) {
    return "--program " + std::string(path.substr(0, dot)) + "=" + std::string(path.substr(dot + 1));
  }
  if (attach == std::string_view::npos) {
    return "program " + std::string(path);
  }
  const std::string option = "--attach " + std::string(path.substr(0, attach));
  const std::size_t target = path.find("].", attach);
  return target == std::string_view::npos ? option : option + ", " + targetKey(path.substr(target + 2));
}

void replaceAll(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
}

} // namespace

std::string typedFor(std::string_view path) {
  if (auto typed = find(kFields, path)) {
    return *typed;
  }
  if (const auto field = between(path, "target.", "")) {
    return targetKey(*field);
  }
  if (const auto rest = between(path, "programs.", "")) {
    return programOption(*rest);
  }
  if (const auto map = between(path, "maps.", ".maxEntries")) {
    return "--max-entries " + *map;
  }
  if (const auto map = between(path, "maps.", ".reuseFileDescriptor")) {
    return "--reuse " + *map;
  }
  if (const auto map = between(path, "maps.", ""); map && map->rfind('.') != std::string::npos) {
    const std::size_t dot = map->rfind('.');
    return "--map " + map->substr(0, dot) + "=" + map->substr(dot + 1);
  }
  if (const auto name = between(path, "kconfig.", "")) {
    return "--kconfig " + *name;
  }
  if (const auto variable = between(path, "variables.", "")) {
    return "--set " + *variable;
  }
  if (const auto label = between(path, "labels.", "")) {
    return "--label " + *label;
  }
  return "'" + std::string(path) + "'";
}

std::string withTypedKeys(std::string reason) {
  replaceAll(reason, "perfEvent", "perf");
  // Where it stands in a list of what a target may have, it is never the first or the only one but for sockets.
  replaceAll(reason, ", targetFileDescriptor", "");
  replaceAll(reason, "targetFileDescriptor", "a descriptor, which only other clients can give");
  return reason;
}

} // namespace btfd::btfctl
