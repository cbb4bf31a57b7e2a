#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace btfd {

/// Levenshtein's distance: how many characters to insert, delete or replace to make `from` of `to`.
inline std::size_t editDistance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, diagonal + 1, replaced});
    }
  }
  return row[to.size()];
}

/// Those of `known` that `name` may have been meant for, the nearest first, three at most.
template <typename Strings>
std::vector<std::string> nearMisses(std::string_view name, const Strings& known) {
  constexpr std::size_t kMost = 3;
  // Longer than any name that people mistype. Comparing takes the product of lengths, with each of thousands of names.
  constexpr std::size_t kLongest = 128;
  if (name.size() > kLongest) {
    return {};
  }
  // A third of the name wrong is still a slip; more is another name.
  const std::size_t tolerated = std::max<std::size_t>(2, name.size() / 3);
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const auto& candidate : known) {
    // The distance is at least the difference of the lengths.
    const std::size_t longer = std::max(name.size(), std::size(candidate));
    if (longer - std::min(name.size(), std::size(candidate)) > tolerated) {
      continue;
    }
    if (const std::size_t distance = editDistance(name, candidate); distance <= tolerated) {
      found.emplace_back(distance, candidate);
    }
  }
  std::ranges::sort(found);
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
