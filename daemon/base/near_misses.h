#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace btfd {

/// Levenshtein's distance of one name to others: how many characters to insert, delete or replace to make `from` of
/// them. A kernel has tens of thousands.
class EditDistance {
 public:
  explicit EditDistance(std::string_view from) : from_(from) {
    for (std::size_t i = 0; i < std::min(from.size(), kBits); ++i) {
      places_.at(static_cast<unsigned char>(from[i])) |= std::uint64_t{1} << i;
    }
  }

  [[nodiscard]] std::size_t operator()(std::string_view to) const {
    return from_.empty() ? to.size() : from_.size() <= kBits ? inBits(to) : inRows(to);
  }

 private:
  static constexpr std::size_t kBits = 64;

  /// A column of the matrix at a time, each cell as its difference to the one above (G. Myers, "A fast bit-vector
  /// algorithm for approximate string matching based on dynamic programming", 1999; as H. Hyyro has it for whole
  /// words).
  [[nodiscard]] std::size_t inBits(std::string_view to) const {
    const std::uint64_t last = std::uint64_t{1} << (from_.size() - 1);
    std::uint64_t larger = ~std::uint64_t{0};
    std::uint64_t smaller = 0;
    std::size_t distance = from_.size();
    for (const char character : to) {
      const std::uint64_t equal = places_[static_cast<unsigned char>(character)];
      const std::uint64_t vertical = equal | smaller;
      const std::uint64_t diagonal = (((equal & larger) + larger) ^ larger) | equal;
      std::uint64_t increased = smaller | ~(diagonal | larger);
      std::uint64_t decreased = larger & diagonal;
      distance += (increased & last) != 0 ? 1 : 0;
      distance -= (decreased & last) != 0 ? 1 : 0;
      increased = increased << 1U | 1U;
      decreased <<= 1U;
      larger = decreased | ~(vertical | increased);
      smaller = increased & vertical;
    }
    return distance;
  }

  [[nodiscard]] std::size_t inRows(std::string_view to) const {
    std::vector<std::size_t> row(to.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < from_.size(); ++i) {
      std::size_t diagonal = std::exchange(row[0], i + 1);
      for (std::size_t j = 0; j < to.size(); ++j) {
        const std::size_t replaced = diagonal + (from_[i] == to[j] ? 0 : 1);
        diagonal = row[j + 1];
        row[j + 1] = std::min({row[j] + 1, diagonal + 1, replaced});
      }
    }
    return row[to.size()];
  }

  std::string_view from_;
  /// For each character, where the name has it, as bits.
  std::array<std::uint64_t, 256> places_{};
};

inline std::size_t editDistance(std::string_view from, std::string_view to) {
  return EditDistance(from)(to);
}

/// Of letters in ASCII.
inline std::string inLowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

/// Longer than nearly all names that people mistype. Comparing a longer one with each of thousands of names takes the
/// product of the lengths (EditDistance::inRows).
inline constexpr std::size_t kLongestMistyped = 64;

/// What of a name may be wrong.
struct Slips {
  /// Whether large letters may stand for small ones and the other way round.
  bool anyCase = false;
  /// So many characters, even if the name is short; of longer ones, a third.
  std::size_t atLeast = 2;
};

/// Those of `known` that `name` may have been meant for, the nearest first, each once, three at most.
template <typename Strings>
std::vector<std::string> nearMisses(std::string_view name, const Strings& known, const Slips& slips = {}) {
  constexpr std::size_t kMost = 3;
  if (name.size() > kLongestMistyped) {
    return {};
  }
  // A third of the name wrong is still a slip; more is another name.
  const std::size_t tolerated = std::max<std::size_t>(slips.atLeast, name.size() / 3);
  const std::string folded = slips.anyCase ? inLowerCase(name) : std::string(name);
  const EditDistance distanceTo(folded);
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const auto& candidate : known) {
    // The distance is at least the difference of the lengths.
    const std::size_t longer = std::max(name.size(), std::size(candidate));
    if (longer - std::min(name.size(), std::size(candidate)) > tolerated) {
      continue;
    }
    const std::size_t distance = slips.anyCase ? distanceTo(inLowerCase(candidate)) : distanceTo(candidate);
    if (distance <= tolerated) {
      found.emplace_back(distance, candidate);
    }
  }
  std::ranges::sort(found);
  const auto repeated = std::ranges::unique(found);
  found.erase(repeated.begin(), repeated.end());
  std::vector<std::string> names;
  for (auto& [distance, candidate] : found) {
    if (names.size() < kMost) {
      names.push_back(std::move(candidate));
    }
  }
  return names;
}

/// "; did you mean 'a' or 'b'?" of `near`; empty if there are none.
template <typename Strings>
std::string didYouMean(const Strings& near) {
  std::string text;
  for (const auto& name : near) {
    text += (text.empty() ? "; did you mean '" : "' or '") + std::string(name);
  }
  return text.empty() ? text : text + "'?";
}

/// "; it has 'a', 'b'" of `near`, where what was looked for has to have one of them; empty if there are none.
template <typename Strings>
std::string itHas(const Strings& near) {
  std::string text;
  for (const auto& name : near) {
    text += (text.empty() ? "; it has '" : ", '") + std::string(name) + "'";
  }
  return text;
}

} // namespace btfd
