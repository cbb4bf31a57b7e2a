#pragma once

#include <string>
#include <vector>

namespace btfd::object {

/// Collects what libbpf says for as long as it lives, instead of having it on stderr. At most one at a time; one thread
/// only may use libbpf meanwhile (libbpf's print function has no context).
class LibbpfLog {
 public:
  LibbpfLog();
  ~LibbpfLog();
  LibbpfLog(const LibbpfLog&) = delete;
  LibbpfLog& operator=(const LibbpfLog&) = delete;
  LibbpfLog(LibbpfLog&&) = delete;
  LibbpfLog& operator=(LibbpfLog&&) = delete;

  /// Its warnings so far, one a line, without "libbpf: " and without its advice on EPERM, which is wrong since
  /// Linux 5.11 (memory is charged to the cgroup, not to RLIMIT_MEMLOCK).
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

  /// For the print function.
  void add(std::string text);

 private:
  std::vector<std::string> warnings_;
};

} // namespace btfd::object
