// What a client may send: bytes through a socket into messages, JSON, and the check against io.btfd.
#include "base/unique_fd.h"
#include "varlink/embedded.h"
#include "varlink/frame_reader.h"
#include "varlink/message.h"
#include "varlink/validate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <sys/socket.h>

namespace {

using namespace btfd;
using namespace btfd::varlink;

/// At most so many pieces, for the sake of speed: each costs some syscalls.
constexpr std::size_t kPieces = 32;

void checkCall(const Interface& interface, const Frame& frame) {
  auto call = parseCall(frame.text);
  if (!call) {
    return;
  }
  const std::string_view name = call->method;
  const auto* method = interface.findMethod(name.substr(name.rfind('.') + 1));
  if (method == nullptr || !validate(interface, method->input, call->parameters)) {
    return;
  }
  // What was accepted must be a fixed point: written, read and checked again it is the same.
  const auto again = parseCall(formatCall(call->method, call->parameters, nullptr));
  auto parameters = again.value().parameters;
  if (!validate(interface, method->input, parameters) || parameters != call->parameters) {
    std::abort();
  }
}

} // namespace

/// The first byte says in what pieces the rest is sent.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Interface interface = parseInterface(interfaceText("io.btfd")).value();
  if (size == 0) {
    return 0;
  }
  const std::size_t piece = data[0] == 0 ? size : std::max<std::size_t>(data[0], size / kPieces);
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
    std::abort();
  }
  const UniqueFd here(ends[0]);
  const UniqueFd there(ends[1]);
  FrameReader reader(std::size_t{64} << 10);
  Frame frame;
  std::size_t messages = 0;
  for (std::size_t offset = 1; offset < size; offset += piece) {
    const std::size_t count = std::min(piece, size - offset);
    if (::send(there.get(), data + offset, count, MSG_NOSIGNAL) != static_cast<ssize_t>(count)) {
      return 0; // The socket's buffer is full: the reader had given up.
    }
    for (;;) {
      const auto outcome = reader.read(here, frame);
      if (!outcome) {
        return 0;
      }
      if (*outcome == FrameReader::Outcome::message) {
        ++messages;
        checkCall(interface, frame);
        static_cast<void>(parseReply(frame.text));
      } else if (*outcome != FrameReader::Outcome::progress) {
        break;
      }
    }
  }
  if (messages != static_cast<std::size_t>(std::count(data + 1, data + size, 0))) {
    std::abort();
  }
  return 0;
}
