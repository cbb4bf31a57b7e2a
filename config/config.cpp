#include "config/config.h"

#include "base/unique_fd.h"
#include "config/detail/document.h"
#include "config/detail/keys.h"
#include "config/detail/load.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace btfd::config {
namespace {

using detail::Document;
using detail::Entry;
using detail::keyPath;
using detail::Position;
using detail::Problem;

/// What the second and third step make of a document.
struct Checked {
  Config config;
  std::vector<Problem> problems;
  /// Paths of the keys whose values were not taken.
  std::set<std::string> refused;
};

/// Second step: each value into its member of the configuration.
void applyEntry(const Entry& entry, Checked& checked) {
  const std::string path = keyPath(entry.section, entry.name);
  const auto refuse = [&](const std::string& text) {
    checked.problems.push_back({entry.position, path + ": " + text});
    checked.refused.insert(path);
  };
  if (entry.section.empty() && detail::isSection(entry.name)) {
    if (!entry.value.is_object()) {
      refuse("must be an object: { ... }");
    }
    return;
  }
  if (!entry.section.empty() && !detail::isSection(entry.section)) {
    return; // the section's own entry has said so
  }
  const detail::Key* key = detail::findKey(entry.section, entry.name);
  if (key == nullptr) {
    refuse(detail::unknownKey(entry.section, entry.name));
  } else if (const auto complaint = key->apply(entry.value, checked.config)) {
    refuse(*complaint);
  }
}

/// A pair of keys of "limits" of which the first may not be more than the second allows.
struct Order {
  std::string_view name;
  std::size_t value;
  std::string_view limitName;
  std::size_t limitValue;
  std::size_t allowed;
  std::string_view reason;
};

/// Third step: what must hold between values.
void checkTogether(const Document& document, Checked& checked) {
  const Config::Limits& limits = checked.config.limits;
  const auto longest = static_cast<std::size_t>(limits.maximumDeadline.count());
  const std::array orders{
      Order{"deadlineMs", static_cast<std::size_t>(limits.deadline.count()), "maximumDeadlineMs", longest, longest, ""},
      Order{"connectionsPerUser", limits.connectionsPerUser, "connections", limits.connections, limits.connections, ""},
      Order{"verifierLogBytes", limits.verifierLogBytes, "messageBytes", limits.messageBytes, limits.messageBytes / 2,
            "half of it: the log is part of a message, and each line's end takes two bytes there"},
  };
  for (const Order& order : orders) {
    const std::string path = keyPath("limits", order.name);
    if (order.value <= order.allowed || checked.refused.contains(path) ||
        checked.refused.contains(keyPath("limits", order.limitName))) {
      continue;
    }
    const auto isOneOfThem = [&](const Entry& entry) {
      return entry.section == "limits" && (entry.name == order.name || entry.name == order.limitName);
    };
    const auto entry = std::ranges::find_if(document.entries, isOneOfThem);
    std::string text = path + ": " + std::to_string(order.value) + " is more than " + std::string(order.limitName) +
                       " (" + std::to_string(order.limitValue) + ") allows";
    if (!order.reason.empty()) {
      text += ", " + std::string(order.reason);
    }
    checked.problems.push_back({entry == document.entries.end() ? Position{} : entry->position, std::move(text)});
  }
}

Error report(std::vector<Problem> problems, std::string_view fileName) {
  std::ranges::sort(problems);
  Error error{.message = {}, .code = EINVAL};
  for (const Problem& problem : problems) {
    error.message += (error.message.empty() ? "" : "\n") + std::string(fileName) + ":" +
                     std::to_string(problem.position.line) + ":" + std::to_string(problem.position.column) + ": " +
                     problem.text;
  }
  return error;
}

Result<std::string> readFile(BorrowedFd file, const std::string& path) {
  std::string text;
  std::array<char, 16384> buffer{};
  for (;;) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count == 0) {
      return text;
    }
    if (count < 0) {
      if (errno == EINTR) {
        continue;
      }
      return failErrno("cannot read configuration file " + path, errno);
    }
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > kMaximumFileBytes) {
      return fail(path + ": is larger than " + std::to_string(kMaximumFileBytes) +
                      " bytes: this is no configuration file",
                  EFBIG);
    }
  }
}

} // namespace

Result<Config> parse(std::string_view text, std::string_view fileName) {
  const Document document = detail::readDocument(text);
  Checked checked{.config = {}, .problems = document.problems, .refused = {}};
  for (const Entry& entry : document.entries) {
    applyEntry(entry, checked);
  }
  if (document.complete) { // else the key that makes two values agree may be in what was not read
    checkTogether(document, checked);
  }
  if (!checked.problems.empty()) {
    return std::unexpected(report(std::move(checked.problems), fileName));
  }
  return checked.config;
}

Result<Config> load(const std::string& path) {
  return path.empty() ? detail::loadFile(std::string(kDefaultFile), detail::Missing::MeansDefaults)
                      : detail::loadFile(path, detail::Missing::IsAnError);
}

Result<Config> detail::loadFile(const std::string& path, Missing missing) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT && missing == Missing::MeansDefaults) {
      return Config{};
    }
    return failErrno("cannot open configuration file " + path, errno);
  }
  auto text = readFile(file, path);
  if (!text) {
    return std::unexpected(std::move(text).error());
  }
  return parse(*text, path);
}

std::vector<std::string> knownKeys() {
  std::vector<std::string> all;
  for (const detail::Key& key : detail::keys()) {
    all.push_back(keyPath(key.section, key.name));
  }
  return all;
}

} // namespace btfd::config
