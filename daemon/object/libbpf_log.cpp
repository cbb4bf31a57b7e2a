#include "libbpf_log.h"

#include <bpf/libbpf.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <string_view>
#include <utility>

namespace btfd::object {

namespace {

/// A hostile object can make libbpf warn once for each of its parts.
constexpr std::size_t kMaximumWarnings = 200;
constexpr std::size_t kMaximumLine = 4096;

LibbpfLog*& current() {
  static LibbpfLog* log = nullptr;
  return log;
}

__attribute__((format(printf, 2, 0))) int print(enum libbpf_print_level level, const char* format, va_list arguments) {
  if (level != LIBBPF_WARN || current() == nullptr) {
    return 0;
  }
  std::array<char, kMaximumLine> line{};
  const int length = std::vsnprintf(line.data(), line.size(), format, arguments);
  current()->add(line.data());
  return length;
}

} // namespace

LibbpfLog::LibbpfLog() {
  current() = this;
  libbpf_set_print(print);
}

LibbpfLog::~LibbpfLog() {
  libbpf_set_print(nullptr);
  current() = nullptr;
}

void LibbpfLog::add(std::string text) {
  constexpr std::string_view kPrefix = "libbpf: ";
  if (text.starts_with(kPrefix)) {
    text.erase(0, kPrefix.size());
  }
  while (text.ends_with('\n')) {
    text.pop_back();
  }
  const bool wrongAdvice = text.find("ulimit -l") != std::string::npos;
  if (!text.empty() && !wrongAdvice && warnings_.size() < kMaximumWarnings) {
    warnings_.push_back(std::move(text));
  }
}

} // namespace btfd::object
