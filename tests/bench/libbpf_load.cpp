#include "libbpf_load.h"

#include <bpf/libbpf.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <memory>

namespace btfd::bench {

namespace {

/// libbpf's print callback takes no argument of ours.
thread_local std::string warnings;

int keepWarning(libbpf_print_level level, const char* format, va_list arguments) {
  if (level != LIBBPF_WARN) {
    return 0;
  }
  char line[1024];
  std::vsnprintf(line, sizeof(line), format, arguments);
  warnings += line;
  return 0;
}

struct CloseObject {
  void operator()(bpf_object* object) const { bpf_object__close(object); }
};

} // namespace

Result<void> loadWithLibbpf(std::span<const std::byte> object) {
  libbpf_set_print(keepWarning);
  warnings.clear();
  const std::unique_ptr<bpf_object, CloseObject> opened(bpf_object__open_mem(object.data(), object.size(), nullptr));
  if (!opened) {
    return failErrno("libbpf cannot open the object: " + warnings, errno);
  }
  if (const int error = bpf_object__load(opened.get()); error != 0) {
    return failErrno("libbpf cannot load the object: " + warnings, -error);
  }
  return {};
}

} // namespace btfd::bench
