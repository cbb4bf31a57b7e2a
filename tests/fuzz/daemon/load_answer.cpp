// A load or attach job's answer from a worker that a hostile object has taken over: taken apart, or an error.
#include "service/object_json.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <fcntl.h>

using namespace btfd;

namespace {

loader::ChannelMessage messageOf(const nlohmann::json& body) {
  loader::ChannelMessage message{.body = body, .descriptors = {}};
  for (int i = 0; i < 5; ++i) {
    message.descriptors.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  return message;
}

} // namespace

/// The body as JSON, for libFuzzer's sake.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto body = nlohmann::json::parse(text, nullptr, false);
  if (body.is_discarded()) {
    return 0;
  }
  auto load = messageOf(body);
  if (const auto object = service::takeObject(load)) {
    service::AnswerDescriptors descriptors(true);
    static_cast<void>(service::toJson(*object, descriptors));
    for (const BorrowedFd descriptor : descriptors.all()) {
      if (!descriptor) {
        std::abort();
      }
    }
  }
  auto attach = messageOf(body);
  static_cast<void>(service::takeLink(attach));
  return 0;
}
