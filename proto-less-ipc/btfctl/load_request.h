#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace btfd::btfctl {

/// What the options of `btfctl load` say about the object, as typed.
struct LoadOptions {
  std::string object{};
  /// Empty: called after its file.
  std::string name{};
  /// KEY=VALUE
  std::vector<std::string> labels{};
  /// PROGRAM or PROGRAM=TARGET
  std::vector<std::string> attach{};
  /// PROGRAM=FUNCTION or PROGRAM=OBJECT-ID:PROGRAM[:FUNCTION]
  std::vector<std::string> targets{};
  std::vector<std::string> enable{};
  std::vector<std::string> disable{};
  /// VARIABLE=JSON
  std::vector<std::string> variables{};
  /// MAP=NUMBER
  std::vector<std::string> maxEntries{};
  /// MAP=FIELD:VALUE,...
  std::vector<std::string> maps{};
  /// PROGRAM=FIELD:VALUE,...
  std::vector<std::string> programs{};
  /// CONFIG_NAME=VALUE
  std::vector<std::string> kconfig{};
  /// MAP=PATH or MAP=ID
  std::vector<std::string> reuse{};
  /// A file; empty: the running kernel's BTF.
  std::string kernelBtf{};
  int logLevel = 0;
  bool dryRun = false;
  std::string deadline{};
};

/// A map of the object, and where to find the one to use in its place.
struct ReusedMap {
  std::string name;
  std::string source;
};

/// Load's parameters, but for the fields that hold descriptors. Errors name the option that is wrong.
Result<nlohmann::json> loadParameters(const LoadOptions& options);

/// What --reuse names. A map that is named twice is an error.
Result<std::vector<ReusedMap>> reusedMaps(const LoadOptions& options);

/// A call's parameters and the descriptors that its fields refer to by index.
struct LoadRequest {
  nlohmann::json parameters;
  std::vector<UniqueFd> descriptors;
};

/// Opens the object file, the maps to reuse and, if it is not empty, the file `kernelBtf`, and lets `parameters` refer
/// to them.
Result<LoadRequest> withDescriptors(nlohmann::json parameters, const std::string& object,
                                    const std::vector<ReusedMap>& maps, const std::string& kernelBtf = "");

/// Labels, each KEY=VALUE, as an object. Errors name --label.
Result<nlohmann::json> parseLabels(const std::vector<std::string>& labels);

/// `text` as milliseconds for deadlineMs; errors name --deadline.
Result<std::int64_t> parseDeadline(const std::string& text);

} // namespace btfd::btfctl
