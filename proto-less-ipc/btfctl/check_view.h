#pragma once

#include "base/error.h"
#include "check/kernels.h"
#include "check/report.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace btfd::btfctl {

/// One object and what became of it on each kernel that could be read, in their order; or why it could not be read.
struct CheckedObject {
  std::string path;
  std::optional<Error> error;
  std::vector<check::Report> reports;
};

/// All of what `btfctl check` has found out.
struct CheckResult {
  std::vector<check::FoundKernel> kernels;
  std::vector<CheckedObject> objects;

  /// Whether an object or a kernel could not be read.
  [[nodiscard]] bool isAnythingUnreadable() const;

  /// The worst of all verdicts.
  [[nodiscard]] check::Verdict worst() const;
};

/// For people: the verdicts as a table, object by kernel, and the reasons below it. With notes if `verbose`.
std::string checkView(const CheckResult& result, bool verbose, std::size_t width);

/// For people: what could not be read, a line each.
std::string unreadableView(const CheckResult& result);

/// For programs.
nlohmann::json checkDocument(const CheckResult& result);

} // namespace btfd::btfctl
