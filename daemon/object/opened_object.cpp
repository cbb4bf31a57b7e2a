#include "opened_object.h"

#include <cerrno>
#include <cstring>

namespace btfd::object {

namespace {

/// libbpf's error of bpf_object__open in words: it has numbers of its own from __LIBBPF_ERRNO__START on.
std::string openErrorText(int code) {
  std::string text(256, '\0');
  libbpf_strerror(code, text.data(), text.size());
  text.resize(std::strlen(text.c_str()));
  return text;
}

std::string because(const LibbpfLog& log, int code) {
  if (code == ENOENT && log.warnings().empty()) {
    return "its BTF or its relocations refer to a section that the file does not have";
  }
  return log.warnings().empty() ? openErrorText(code) : log.warnings().front() + " (" + openErrorText(code) + ")";
}

} // namespace

Result<ObjectHandle> openWithLibbpf(std::span<const std::byte> image, const std::string& name,
                                    const std::string& pinDirectory, const LibbpfLog& log) {
  // No token: who loads has the capabilities, and libbpf would try to make one for each object.
  LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = name.empty() ? "object" : name.c_str(),
              .pin_root_path = pinDirectory.empty() ? nullptr : pinDirectory.c_str(), .bpf_token_path = "");
  ObjectHandle object(bpf_object__open_mem(image.data(), image.size(), &options));
  if (!object) {
    const int code = errno;
    if (!log.warnings().empty() && log.warnings().front().starts_with("BTF is required")) {
      return fail("the object has no BTF (section .BTF), which its maps or other parts of it need: compile it with -g",
                  code);
    }
    return fail("libbpf cannot open the object: " + because(log, code), code);
  }
  return object;
}

} // namespace btfd::object
