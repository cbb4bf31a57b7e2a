#pragma once

#include "perf_event.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace btfd::loader {

// What the kernel's errno does not say of an attachment that it refused: each looks at what this process can see and
// gives a text to stand behind the errno, or nothing. `code` is a positive errno value.

/// Where tracefs is looked for, as libbpf does it, the first that is there.
struct TracefsPlaces {
  std::string debugfs = "/sys/kernel/debug/tracing";
  std::string tracefs = "/sys/kernel/tracing";
};

std::string whyNoTracepoint(std::string_view category, std::string_view name, int code,
                            const TracefsPlaces& places = {});

/// The errno value that libbpf gives where it does not find this tracepoint; 0 where it does.
int tracepointError(const std::string& category, const std::string& name, const TracefsPlaces& places = {});

/// Whether the kernel has a function of this name, which may stand behind its module's, as in "module:function"; true
/// where `symbols`, a file as /proc/kallsyms, does not tell.
bool kernelHasFunction(std::string_view name, const std::string& symbols = "/proc/kallsyms");

/// Whether the kernel was built with kprobes that bpf(2) can be attached to; they are a perf event's source.
bool kernelHasKprobes();

/// For a probe of `function` in `binary`; `warnings` are libbpf's.
std::string whyNoUprobe(const std::string& binary, const std::string& function, int code,
                        const std::vector<std::string>& warnings);

std::string whyNoKernelFunction(std::string_view name, int code, const std::string& symbols = "/proc/kallsyms",
                                bool hasKprobes = kernelHasKprobes());

std::string whyNoRawTracepoint(std::string_view name, int code);

/// `mode` as in AttachTarget.
std::string whyNoXdp(std::string_view mode, int code);

/// Where a place before or after others was asked for.
std::string whyNoOrder(int code);

std::string whyNoNetkit(int code);

std::string whyNoTcFilter(std::uint32_t priority, int code);

std::string whyNoPerfEvent(const PerfEvent& event, int code);

} // namespace btfd::loader
