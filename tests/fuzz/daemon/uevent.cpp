// What comes from the kernel's uevent socket.
#include "service/uevent.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool looksSo = text.starts_with("add@/module/") || text.starts_with("remove@/module/");
  if (btfd::service::isModuleEvent({text.data(), text.size()}) != looksSo) {
    std::abort();
  }
  return 0;
}
