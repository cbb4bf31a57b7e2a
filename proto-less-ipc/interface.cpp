#include "varlink/interface.h"

#include <algorithm>

namespace btfd::varlink {

namespace {

template <typename Definitions>
const typename Definitions::value_type* findByName(const Definitions& definitions, std::string_view name) {
  const auto found = std::ranges::find(definitions, name, &Definitions::value_type::name);
  return found == definitions.end() ? nullptr : &*found;
}

} // namespace

const MethodDefinition* Interface::findMethod(std::string_view method) const {
  return findByName(methods, method);
}

const ErrorDefinition* Interface::findError(std::string_view error) const {
  return findByName(errors, error);
}

} // namespace btfd::varlink
