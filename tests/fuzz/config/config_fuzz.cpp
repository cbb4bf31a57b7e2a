#include "config/config.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

/// Ends the process, so that the fuzzer keeps the input.
void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

/// Each line names the file and is printable ASCII, whatever the file holds.
void checkMessage(std::string_view message) {
  require(!message.empty());
  while (!message.empty()) {
    const std::string_view line = message.substr(0, message.find('\n'));
    require(line.starts_with("fuzz.json:"));
    for (const char c : line) {
      require(c >= 0x20 && c <= 0x7e);
    }
    message.remove_prefix(line.size() == message.size() ? line.size() : line.size() + 1);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = btfd::config::parse(text, "fuzz.json");
  if (!config) {
    checkMessage(config.error().message);
    return 0;
  }
  const auto& limits = config->limits;
  require(limits.deadline.count() > 0 && limits.deadline <= limits.maximumDeadline);
  require(limits.connectionsPerUser > 0 && limits.connectionsPerUser <= limits.connections);
  require(limits.verifierLogBytes <= limits.messageBytes / 2);
  require(config->socket.mode <= 0777 && config->socket.path.starts_with('/'));
  return 0;
}
