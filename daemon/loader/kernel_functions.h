#pragma once

#include "base/error.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace btfd::loader {

/// Where tracefs is looked for, as libbpf does it, the first that is there.
struct TracefsPlaces {
  std::string debugfs = "/sys/kernel/debug/tracing";
  std::string tracefs = "/sys/kernel/tracing";
};

/// The one of the places that libbpf takes.
const std::string& tracefsRoot(const TracefsPlaces& places);

/// Files that list the kernel's functions.
struct KernelFunctionFiles {
  /// All of them, and variables.
  std::string symbols = "/proc/kallsyms";
  TracefsPlaces tracefs = {};
  /// Those that a kprobe must not be in.
  std::string blacklist = "/sys/kernel/debug/kprobes/blacklist";
};

struct KernelFunction {
  std::string name;
  /// Empty for the kernel's own.
  std::string module;
  /// 0 where the kernel does not show it to this process.
  std::uint64_t address = 0;

  /// "function" or "module:function".
  [[nodiscard]] std::string qualifiedName() const { return module.empty() ? name : module + ":" + name; }
};

/// Whether `name` is as the pattern says: '*' stands for any characters, '?' for one.
bool matchesPattern(std::string_view name, std::string_view pattern);

/// Whether `name` has a '*' or '?'.
bool isPattern(std::string_view name);

/// The functions that match `pattern` and, if the kernel tells which (it does where it has ftrace), can be traced; each
/// place once.
std::vector<KernelFunction> functionsLike(std::string_view pattern, const KernelFunctionFiles& files = {});

/// All functions of these names, each of which may stand behind its module's, as in "module:function".
std::vector<KernelFunction> functionsNamed(std::span<const std::string> names, const KernelFunctionFiles& files = {});

/// The first of `names` that the kernel has no function of; empty where it has all, or does not tell.
std::string firstMissing(std::span<const std::string> names, const KernelFunctionFiles& files = {});

bool kernelHasFunction(std::string_view name, const KernelFunctionFiles& files = {});

/// Whether the kernel was built with kprobes that bpf(2) can be attached to; they are a perf event's source.
bool kernelHasKprobes();

/// How functions are to be probed.
enum class ProbeForm : std::uint8_t {
  /// Each by a kprobe of its own, which is a perf event.
  single,
  /// All by one link, which ftrace carries.
  multi,
};

/// What errno value `code` does not say of a probe of these functions: which of them the kernel does not have, or not
/// for probes; the file system of kprobes or the option that it lacks. Empty where there is nothing to add.
std::string whyNoKernelFunction(std::span<const std::string> names, int code, ProbeForm form,
                                const KernelFunctionFiles& files = {}, bool hasKprobes = kernelHasKprobes());

/// For a pattern that no function matches.
std::string whyNoneLike(std::string_view pattern, const KernelFunctionFiles& files = {});

/// For "ksyscall/NAME": there is no system call of that name.
std::string whyNoSystemCall(std::string_view name, const KernelFunctionFiles& files = {});

} // namespace btfd::loader
