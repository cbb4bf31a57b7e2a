#include "machine.h"

#include <bpf/libbpf.h>

#include <array>
#include <ctime>
#include <fstream>
#include <thread>

#include <sys/utsname.h>

namespace btfd::bench {

namespace {

/// The name's key in /proc/cpuinfo differs by architecture; on some there is none.
std::string cpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos && (line.starts_with("model name") || line.starts_with("Model"))) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm time{};
  ::gmtime_r(&seconds, &time);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &time);
  return text.data();
}

} // namespace

Machine describeMachine() {
  utsname names{};
  ::uname(&names);
  return {.cpu = cpuModel(),
          .cores = std::thread::hardware_concurrency(),
          .kernel = std::string(names.release) + " " + names.machine,
          .date = now(),
          .libbpf = libbpf_version_string()};
}

} // namespace btfd::bench
