#pragma once

#include "perf_event.h"

#include <string>
#include <string_view>

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

std::string whyNoRawTracepoint(std::string_view name, int code);

/// `mode` as in AttachTarget.
std::string whyNoXdp(std::string_view mode, int code);

std::string whyNoPerfEvent(const PerfEvent& event, int code);

} // namespace btfd::loader
