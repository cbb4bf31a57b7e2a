#include "base/near_misses.h"
#include "base/text.h"
#include "core/kernel_names.h"
#include "object/sought_type.h"
#include "rules.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <linux/bpf.h>
#include <linux/btf.h>

namespace btfd::check {

namespace {

/// What an architecture calls the function of a system call (arch_specific_syscall_pfx in libbpf, and the kernel's
/// syscall_wrapper.h), or what stands in it. Those that take no arguments may be in BTF as the latter only.
constexpr std::array<std::string_view, 12> kSystemCallPrefixes{
    "__x64_sys_",  "__arm64_sys_", "__s390x_sys_", "__riscv_sys_", "__powerpc_sys_", "__powerpc64_sys_",
    "__mips_sys_", "__arm_sys_",   "__ia32_sys_",  "__do_sys_",    "__se_sys_",      "sys_",
};

constexpr const char* kLoadsBut = "it loads, but cannot be attached: ";
constexpr const char* kMayNotAttach = "it loads, but BTF does not tell whether it can be attached: ";

/// What one program attaches to, on one kernel.
class TargetRules {
 public:
  TargetRules(const struct bpf_program& program, const TargetKernel& kernel, core::NearNames& near,
              std::vector<Finding>& findings)
      : program_(program), kernel_(kernel), near_(near), findings_(findings),
        section_(bpf_program__section_name(&program)) {
    const auto slash = section_.find('/');
    prefix_ = section_.substr(0, slash);
    target_ = slash == std::string_view::npos ? std::string_view{} : section_.substr(slash + 1);
  }

  void check() {
    switch (bpf_program__type(&program_)) {
    case BPF_PROG_TYPE_KPROBE:
      checkProbe();
      return;
    case BPF_PROG_TYPE_TRACEPOINT:
      if (isNamed(Severity::note)) {
        checkTracepoint();
      }
      return;
    case BPF_PROG_TYPE_RAW_TRACEPOINT:
    case BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE:
      if (isNamed(Severity::note)) {
        findTracepoint(target_);
      }
      return;
    default:
      if (const auto sought = object::soughtFor(program_); sought && isNamed(Severity::unknown)) {
        findTarget(*sought);
      }
    }
  }

 private:
  void add(Severity severity, std::string_view name, std::string message) {
    collect(findings_, {.severity = severity,
                        .topic = Topic::attachTarget,
                        .program = bpf_program__name(&program_),
                        .map = {},
                        .name = std::string(name),
                        .message = std::move(message),
                        .relocation = {}});
  }

  /// Whether the section says what it attaches to; if not, that is said. Only some programs need it to be loaded.
  bool isNamed(Severity severity) {
    if (target_.empty()) {
      add(severity, {},
          "its section " + quotedName(section_) + " does not say what it attaches to: who " +
              (severity == Severity::note ? "attaches" : "loads") + " it has to");
    }
    return !target_.empty();
  }

  [[nodiscard]] bool has(const std::string& name, std::uint32_t kind) const {
    return core::findNamed(kernel_.targets(), name, kind).has_value();
  }

  // ---- What bpf(2) looks for as it loads the program ---------------------------------------------------------------

  void findTarget(const object::SoughtType& sought) {
    std::string_view module;
    std::string_view name = target_;
    if (const auto colon = target_.find(':'); colon != std::string_view::npos) { // "module:function"
      module = target_.substr(0, colon);
      name = target_.substr(colon + 1);
    }
    if (!core::findNamed(kernel_.targets(), std::string(sought.prefix) + std::string(name), sought.kind, module)) {
      add(Severity::error, name, lack(sought, name, module));
    }
  }

  [[nodiscard]] std::string lack(const object::SoughtType& sought, std::string_view name,
                                 std::string_view module = {}) const {
    return "the kernel has no " + std::string(sought.what) + " " + quotedName(name) +
           (module.empty() ? "" : " in " + quotedName(module)) + itHas(near_.to(name, sought.kind, sought.prefix));
  }

  // ---- Tracepoints -------------------------------------------------------------------------------------------------

  /// Every tracepoint has a typedef (the kernel's include/trace/bpf_probe.h, since Linux 5.5), so one without has none.
  bool findTracepoint(std::string_view name) {
    const object::SoughtType& sought = object::kTracepointType;
    if (has(std::string(sought.prefix) + std::string(name), sought.kind)) {
      return true;
    }
    if (core::anyMatches(kernel_.targets(), std::string(sought.prefix) + "*", sought.kind)) {
      add(Severity::warning, name, kLoadsBut + lack(sought, name));
    } else if (!hasRecord(name)) {
      add(Severity::unknown, name,
          std::string(kMayNotAttach) +
              "the kernel's BTF does not name tracepoints, as that of Linux before 5.5, such "
              "as " +
              quotedName(name));
    }
    return false;
  }

  /// Whether the kernel has what events of this name, or of others after its template, write (TRACE_EVENT).
  [[nodiscard]] bool hasRecord(std::string_view event) const {
    return has("trace_event_raw_" + std::string(event), BTF_KIND_STRUCT);
  }

  /// "category/name", as below /sys/kernel/tracing/events. Of categories BTF tells nothing.
  void checkTracepoint() {
    constexpr std::array<std::string_view, 5> kMadeAtRunTime{"kprobes", "uprobes", "eprobes", "synthetic", "ftrace"};
    const auto slash = target_.find('/');
    if (slash == std::string_view::npos) {
      add(Severity::warning, target_,
          kLoadsBut + ("its section " + quotedName(section_) + " names no tracepoint as CATEGORY/NAME"));
      return;
    }
    const std::string_view category = target_.substr(0, slash);
    const std::string_view name = target_.substr(slash + 1);
    if (std::ranges::find(kMadeAtRunTime, category) != kMadeAtRunTime.end()) {
      add(Severity::unknown, name,
          std::string(kMayNotAttach) + "it tells nothing of events in " + quotedName(category));
      return;
    }
    for (const std::string_view prefix : {"sys_enter_", "sys_exit_"}) {
      if (category == "syscalls" && name.starts_with(prefix)) {
        checkSystemCall(name.substr(prefix.size()));
        return;
      }
    }
    if (findTracepoint(name) && name.ends_with("_tp") && !hasRecord(name)) { // DECLARE_TRACE: no event goes with it
      add(Severity::unknown, name,
          std::string(kMayNotAttach) + "tracepoints that are called so, such as " + quotedName(name) +
              ", are mostly for raw_tp and tp_btf programs only");
    }
  }

  /// These tracepoints are not in BTF. A function may be there for a system call that the kernel does not have, too,
  /// and may be missing, if it takes no arguments, for one that it has.
  void checkSystemCall(std::string_view name) {
    const auto* prefix = std::ranges::find_if(kSystemCallPrefixes, [&](std::string_view each) {
      return has(std::string(each) + std::string(name), BTF_KIND_FUNC);
    });
    if (prefix != kSystemCallPrefixes.end()) {
      add(Severity::note, name,
          "the kernel has " + std::string(*prefix) + shown(name) +
              ", so most likely the system call, which BTF does not tell for certain");
      return;
    }
    add(Severity::unknown, name,
        std::string(kMayNotAttach) + "it has no function of a system call " + quotedName(name) +
            itHas(near_.to(name, BTF_KIND_FUNC, systemCallPrefix())));
  }

  /// That of most of the kernel's system calls, as all have one that reads files.
  [[nodiscard]] std::string_view systemCallPrefix() const {
    const auto* found = std::ranges::find_if(
        kSystemCallPrefixes, [&](std::string_view each) { return has(std::string(each) + "read", BTF_KIND_FUNC); });
    return found == kSystemCallPrefixes.end() ? kSystemCallPrefixes.front() : *found;
  }

  // ---- Probes ------------------------------------------------------------------------------------------------------

  void checkProbe() {
    if (prefix_.starts_with("uprobe") || prefix_.starts_with("uretprobe") || prefix_.starts_with("usdt")) {
      add(Severity::note, target_, "it attaches to a program or library, which is not looked at");
    } else if (!isNamed(Severity::note)) {
      return;
    } else if (prefix_.ends_with("syscall")) {
      checkSystemCall(target_);
    } else {
      checkProbedFunction(target_.substr(0, target_.find('+'))); // "function+offset"
    }
  }

  /// A function that is not in BTF may be there all the same: those in assembler, for one.
  void checkProbedFunction(std::string_view name) {
    if (name.find_first_of("*?") != std::string_view::npos) {
      if (!core::anyMatches(kernel_.targets(), name, BTF_KIND_FUNC)) {
        add(Severity::unknown, name,
            std::string(kMayNotAttach) + "it has no function that fits " + quotedName(name) +
                ", and not all that can be probed");
      }
    } else if (!has(std::string(name), BTF_KIND_FUNC)) {
      add(Severity::unknown, name,
          std::string(kMayNotAttach) + "it has no function " + quotedName(name) + ", and not all that can be probed" +
              itHas(near_.to(name, BTF_KIND_FUNC)));
    }
  }

  const struct bpf_program& program_;
  const TargetKernel& kernel_;
  core::NearNames& near_;
  std::vector<Finding>& findings_;
  /// "kprobe/do_nanosleep", and the parts of it.
  std::string_view section_;
  std::string_view prefix_;
  std::string_view target_;
};

} // namespace

void checkTarget(const struct bpf_program& program, const TargetKernel& kernel, core::NearNames& near,
                 std::vector<Finding>& findings) {
  TargetRules(program, kernel, near, findings).check();
}

} // namespace btfd::check
