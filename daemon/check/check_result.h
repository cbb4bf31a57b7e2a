#pragma once

#include "base/error.h"
#include "report.h"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace btfd::check {

/// A kernel that objects were checked against; or why it could not be read.
struct CheckedKernel {
  std::string name;
  /// Where it was read; empty if whoever asked knows.
  std::string path;
  std::size_t modules = 0;
  /// Modules that were left out, each with its reason.
  std::vector<Error> leftOut;
  std::optional<Error> error;
};

/// One object and what became of it on each kernel that could be read, in their order; or why it could not be read.
struct CheckedObject {
  std::string name;
  std::string path;
  std::vector<Report> reports;
  std::optional<Error> error;
};

/// Objects by kernels. Refers to none of them.
struct CheckResult {
  std::vector<CheckedKernel> kernels;
  std::vector<CheckedObject> objects;

  /// Whether an object or a kernel could not be read.
  [[nodiscard]] bool isAnythingUnreadable() const;

  /// Whether a kernel lacks what modules add to it, as those could not be read.
  [[nodiscard]] bool isAnyModuleLeftOut() const;

  /// The worst of all verdicts; at least `unknown` if something could not be read.
  [[nodiscard]] Verdict worst() const;
};

/// As io.btfd's type CheckedKernel.
nlohmann::json toJson(const CheckedKernel& kernel);

/// As io.btfd's method Check answers.
nlohmann::json toJson(const CheckResult& result);

} // namespace btfd::check
