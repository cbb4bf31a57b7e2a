#pragma once

#include "base/unique_fd.h"
#include "btf/kernel_spec.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <linux/bpf.h>

/// The one place that reaches into libbpf.
///
/// libbpf has no call that takes a parsed kernel BTF: each bpf_object parses its own. btfd links libbpf statically and
/// has the linker send these of its internal calls here instead (ld's --wrap; the list is in this folder's
/// CMakeLists.txt):
///
///   btf__load_vmlinux_btf      borrows the resident spec (or notes that it is missing)
///   btf_get_from_fd            borrows the resident module BTF where libbpf would read it from the kernel
///   btf__free                  lets what was borrowed be
///   btf__find_by_name_kind     answers from the index instead of scanning
///   btf__find_by_name_kind_own likewise
///   bpf_prog_load              can answer with a program that is already loaded; keeps verifier logs; answers libbpf's
///                              trial program, as nothing depends on it and it takes as long as a small object's own
///   bpf_map_create             notes which map the kernel refused
///
/// and, for USDT, those in usdt_seam.h.
///
/// A process that never calls `lendKernelSpec` and makes no SeamScope gets libbpf as it is. libbpf's calls carry no
/// context of ours, so what they borrow is state of the process: one thread only may use libbpf then, as a worker does.
namespace btfd::loader {

/// What libbpf finds when it asks for kernel BTF.
enum class KernelSpecState : std::uint8_t {
  /// It parses its own: this process is no worker.
  libbpfsOwn,
  /// The resident spec.
  lent,
  /// Nothing yet: the job has to be repeated once the spec is built.
  notBuilt,
  /// Nothing: the kernel has none.
  unavailable,
};

/// Decides what libbpf finds from now on; `spec` is for `lent` only and must outlive all use of libbpf.
void setKernelSpec(KernelSpecState state, const btf::KernelSpec* spec = nullptr);

/// What setKernelSpec said last.
struct LentSpec {
  KernelSpecState state = KernelSpecState::libbpfsOwn;
  /// For `lent`; otherwise null.
  const btf::KernelSpec* spec = nullptr;
};

LentSpec kernelSpec();

/// How often libbpf borrowed and gave back, and whether it asked in vain. Counted since the process started.
struct SeamCounters {
  std::uint64_t borrowed = 0;
  std::uint64_t returned = 0;
  /// Asked while nothing was there to lend.
  std::uint64_t missed = 0;
  /// Trial programs that the kernel was not asked for.
  std::uint64_t trialsAnswered = 0;
};

SeamCounters seamCounters();

/// A program that is loaded already, under its libbpf name.
struct HeldProgram {
  std::string name;
  BorrowedFd descriptor;
};

/// Where a function begins in a program's instructions, as the kernel was told.
struct LoadedFunction {
  /// Number of its first instruction.
  std::uint32_t instruction = 0;
  /// Its type in the object's BTF.
  std::uint32_t type = 0;
};

/// What the kernel said of a program or map while a SeamScope was there.
struct SeamReport {
  /// The last program that bpf(2) refused.
  std::optional<std::string> failedProgram;
  /// Its functions: the program itself and those that libbpf appended.
  std::vector<LoadedFunction> failedFunctions;
  /// The last map that bpf(2) refused.
  std::optional<std::string> failedMap;
  /// Verifier logs of the programs that were loaded with a log level, by name.
  std::vector<std::pair<std::string, std::string>> verifierLogs;
};

/// Watches libbpf's calls of bpf(2) for one job, and answers some of them. At most one at a time.
class SeamScope {
 public:
  /// `held`: programs for which bpf_prog_load answers with a duplicate of the descriptor instead of loading.
  explicit SeamScope(std::span<const HeldProgram> held = {});
  ~SeamScope();
  SeamScope(const SeamScope&) = delete;
  SeamScope& operator=(const SeamScope&) = delete;
  SeamScope(SeamScope&&) = delete;
  SeamScope& operator=(SeamScope&&) = delete;

  [[nodiscard]] const SeamReport& report() const { return report_; }

  /// How many bytes of each verifier log are kept: its end.
  void keepOfEachLog(std::size_t bytes) { logBytes_ = bytes; }

  [[nodiscard]] std::size_t keptOfEachLog() const { return logBytes_; }

  /// For the wrappers: whether this is the program by which bpf_object__load finds out first of all whether it may load
  /// any (bpf_object__probe_loading in libbpf.c). Not true of any that comes after the first program of this scope:
  /// some of libbpf's probes of the kernel's features look the same, and need a real one.
  bool isTrialProgram(enum bpf_prog_type type, const char* name, std::size_t count);

  /// For the wrappers: the descriptor held for `name`, if any.
  [[nodiscard]] std::optional<BorrowedFd> heldProgram(std::string_view name) const;

  /// For the wrappers.
  SeamReport& mutableReport() { return report_; }

 private:
  std::span<const HeldProgram> held_;
  SeamReport report_;
  std::size_t logBytes_ = std::numeric_limits<std::size_t>::max();
  bool trialExpected_ = true;
};

} // namespace btfd::loader
