// The IDL parser: any text is an interface or an error that says where.
#include "varlink/interface.h"
#include "varlink/validate.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace btfd::varlink;
  const auto interface = parseInterface(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!interface) {
    return interface.error().message.contains(':') ? 0 : (std::abort(), 0);
  }
  for (const auto& method : interface->methods) {
    nlohmann::json nothing = nlohmann::json::object();
    static_cast<void>(validate(*interface, method.input, nothing));
    if (interface->findMethod(method.name) != &method) {
      std::abort();
    }
  }
  return 0;
}
