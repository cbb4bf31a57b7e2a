#include "libbpf_verdicts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

namespace btfd::differential {

namespace {

struct CloseObject {
  void operator()(bpf_object* object) const { bpf_object__close(object); }
};

using Object = std::unique_ptr<bpf_object, CloseObject>;

/// The first warning of a load says why it failed; libbpf's print callback takes no argument of ours.
thread_local std::string firstWarning;

int keepFirstWarning(libbpf_print_level level, const char* format, va_list arguments) {
  if (level == LIBBPF_WARN && firstWarning.empty()) {
    std::array<char, 512> line{};
    std::vsnprintf(line.data(), line.size(), format, arguments);
    firstWarning = line.data();
    while (!firstWarning.empty() && firstWarning.back() == '\n') {
      firstWarning.pop_back();
    }
  }
  return 0;
}

std::string tagOf(const bpf_program* program) {
  bpf_prog_info info{};
  __u32 size = sizeof(info);
  if (bpf_prog_get_info_by_fd(bpf_program__fd(program), &info, &size) != 0) {
    return "unknown";
  }
  std::string text;
  for (const unsigned char byte : info.tag) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", byte);
    text += digits.data();
  }
  return text;
}

/// Opens the object without its pins: those would be taken over by the next load, and outlive this process.
Object open(const std::filesystem::path& path) {
  Object object(bpf_object__open_file(path.c_str(), nullptr));
  if (object) {
    bpf_map* map = nullptr;
    bpf_object__for_each_map(map, object.get()) {
      bpf_map__set_pin_path(map, nullptr);
    }
  }
  return object;
}

/// `only`: the one program to load; none: as the object says.
Verdict judge(const std::filesystem::path& path, const std::optional<std::string>& only) {
  firstWarning.clear();
  const Object object = open(path);
  if (!object) {
    return {.outcome = Outcome::invalid, .errnoValue = 0, .tags = {}, .text = firstWarning};
  }
  bpf_program* program = nullptr;
  if (only) {
    bpf_object__for_each_program(program, object.get()) {
      bpf_program__set_autoload(program, *only == bpf_program__name(program));
    }
  }
  if (const int error = bpf_object__load(object.get()); error != 0) {
    // Numbers from 4000 on are libbpf's own (LIBBPF_ERRNO__ENDIAN, for one): no kernel has seen the object.
    if (-error >= __LIBBPF_ERRNO__START) {
      return {.outcome = Outcome::invalid, .errnoValue = 0, .tags = {}, .text = firstWarning};
    }
    return {.outcome = Outcome::refused, .errnoValue = -error, .tags = {}, .text = firstWarning};
  }
  Verdict verdict{.outcome = Outcome::loaded, .errnoValue = 0, .tags = {}, .text = {}};
  bpf_object__for_each_program(program, object.get()) {
    if (bpf_program__fd(program) >= 0) {
      verdict.tags[bpf_program__name(program)] = tagOf(program);
    }
  }
  return verdict;
}

} // namespace

ObjectVerdicts libbpfVerdicts(const std::filesystem::path& path) {
  libbpf_set_print(keepFirstWarning);
  ObjectVerdicts verdicts;
  verdicts.whole = judge(path, std::nullopt);
  if (const Object object = open(path)) {
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, object.get()) {
      const std::string name = bpf_program__name(program);
      verdicts.alone[name] = judge(path, name);
    }
  }
  return verdicts;
}

} // namespace btfd::differential
