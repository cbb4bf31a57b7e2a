#pragma once

#include "config/config.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Second step of reading a configuration: what each key may hold, and where it goes.
namespace btfd::config::detail {

/// One key that the reader knows.
struct Key {
  /// Empty for a key at the top.
  std::string_view section;
  std::string_view name;
  /// Checks `value` and puts it into `config`. Returns what is wrong with it ("must be ..., not ..."), if anything is.
  std::optional<std::string> (*apply)(const nlohmann::json& value, Config& config);
};

/// All of them, in the order of the example file.
std::span<const Key> keys();

/// The key of that name, or null.
const Key* findKey(std::string_view section, std::string_view name);

/// Whether any key is in `section`.
bool isSection(std::string_view section);

/// What is wrong with a key that there is not: with the nearest one that there is, or with all that could stand there.
std::string unknownKey(std::string_view section, std::string_view name);

} // namespace btfd::config::detail
