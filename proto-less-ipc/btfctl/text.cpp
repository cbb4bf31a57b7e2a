#include "btfctl/text.h"

#include "base/near_misses.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>
#include <numeric>
#include <utility>

#include <pwd.h>

namespace btfd::btfctl {
namespace {

bool continuesCodePoint(char c) {
  return (static_cast<unsigned char>(c) & 0xc0U) == 0x80;
}

/// `value` / `unit` with one decimal.
std::string scaled(std::int64_t value, std::int64_t unit) {
  const std::int64_t tenths = (value * 10 + unit / 2) / unit;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

} // namespace

std::string printable(std::string_view text, Lines lines) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Character character = characterAt(text, at);
    const bool kept = lines == Lines::Keep && (text[at] == '\n' || text[at] == '\t');
    const std::string_view bytes = text.substr(at, character.bytes);
    if (character.showable || kept) {
      out += bytes;
    } else {
      appendEscaped(out, bytes);
    }
    at += character.bytes;
  }
  return out;
}

std::size_t displayWidth(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, continuesCodePoint));
}

std::string shortened(std::string_view text, std::size_t width) {
  constexpr std::string_view kEllipsis = "...";
  if (displayWidth(text) <= width) {
    return std::string(text);
  }
  const std::size_t kept = width - std::min(width, kEllipsis.size());
  std::size_t end = 0;
  for (std::size_t columns = 0; end < text.size(); ++end) {
    if (!continuesCodePoint(text[end]) && columns++ == kept) {
      break;
    }
  }
  return std::string(text.substr(0, end)) + std::string(kEllipsis.substr(0, width));
}

std::string indented(std::string_view text, std::size_t indent) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out.append(indent, ' ').append(text.substr(0, end)) += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string joinedWithOr(std::span<const std::string> words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) {
      out += i + 1 == words.size() ? " or " : ", ";
    }
    out += words[i];
  }
  return out;
}

std::string listed(std::span<const std::string> words) {
  constexpr std::size_t kMost = 3;
  if (words.size() <= kMost + 1) {
    return joined(words);
  }
  return joined(words.first(kMost)) + " and " + std::to_string(words.size() - kMost) + " more";
}

std::vector<std::string> nearMisses(std::string_view word, std::span<const std::string> candidates) {
  return btfd::nearMisses(word, candidates, {.anyCase = true, .atLeast = 1});
}

std::string didYouMean(std::string_view word, std::span<const std::string> candidates) {
  const std::vector<std::string> near = nearMisses(word, candidates);
  return near.empty() ? "" : "; did you mean " + joinedWithOr(near) + "?";
}

std::string localTime(std::int64_t usec, bool microseconds) {
  constexpr std::int64_t kUSecPerSecond = 1'000'000;
  const auto seconds = static_cast<std::time_t>(usec / kUSecPerSecond);
  std::tm parts{};
  if (usec < 0 || ::localtime_r(&seconds, &parts) == nullptr) {
    return std::to_string(usec) + " us";
  }
  std::array<char, 64> buffer{};
  std::string text(buffer.data(), std::strftime(buffer.data(), buffer.size(), "%Y-%m-%d %H:%M:%S", &parts));
  if (microseconds) {
    const std::string fraction = std::to_string(usec % kUSecPerSecond);
    text += "." + std::string(6 - fraction.size(), '0') + fraction;
  }
  return text;
}

std::string humanDuration(std::int64_t usec) {
  if (usec < 1000) {
    return std::to_string(usec) + " us";
  }
  return usec < 1'000'000 ? scaled(usec, 1000) + " ms" : scaled(usec, 1'000'000) + " s";
}

std::string humanBytes(std::int64_t bytes) {
  constexpr std::int64_t kKiB = 1024;
  if (bytes < kKiB) {
    return std::to_string(bytes) + " B";
  }
  return bytes < kKiB * kKiB ? scaled(bytes, kKiB) + " KiB" : scaled(bytes, kKiB * kKiB) + " MiB";
}

std::string userName(std::int64_t uid) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(static_cast<uid_t>(uid), &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? std::to_string(uid) : std::string(entry.pw_name) + " (" + std::to_string(uid) + ")";
}

} // namespace btfd::btfctl
