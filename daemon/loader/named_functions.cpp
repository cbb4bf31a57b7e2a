#include "named_functions.h"

namespace btfd::loader {

Outcome<NamedFunctions> readNamedFunctions(const AttachRequest& request) {
  const std::string function = request.text("function").value_or("");
  NamedFunctions named{.functions = request.texts("functions"), .pattern = request.text("pattern").value_or("")};
  const int ways = static_cast<int>(!function.empty()) + static_cast<int>(!named.functions.empty()) +
                   static_cast<int>(!named.pattern.empty());
  for (const char* field : {"function", "functions", "pattern"}) {
    if (ways == 0 && request.has(field)) {
      return request.wrong(field, "is empty");
    }
  }
  if (ways > 1) {
    return request.wrong(named.pattern.empty() ? "functions" : "pattern",
                         "a target has one of function, functions and pattern");
  }
  if (!function.empty()) {
    named.functions = {function};
  }
  return named;
}

} // namespace btfd::loader
