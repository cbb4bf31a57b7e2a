#pragma once

#include "attach_request.h"

#include <string>
#include <vector>

namespace btfd::loader {

/// The functions that a request for probes names, kprobes and uprobes alike: by one of the fields function, functions
/// and pattern.
struct NamedFunctions {
  /// Of function, one; of functions, all.
  std::vector<std::string> functions;
  /// Of pattern.
  std::string pattern;

  /// Whether the request leaves it to the section.
  [[nodiscard]] bool none() const { return functions.empty() && pattern.empty(); }
};

/// InvalidParameter for a field that is empty, and for more than one of them.
Outcome<NamedFunctions> readNamedFunctions(const AttachRequest& request);

} // namespace btfd::loader
