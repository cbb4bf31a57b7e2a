#pragma once

#include "kernel_functions.h"
#include "perf_event.h"
#include "user_binary.h"

#include <bpf/libbpf.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace btfd::loader {

// What the kernel's errno does not say of an attachment that it refused: each looks at what this process can see and
// gives a text to stand behind the errno, or nothing. `code` is a positive errno value.

std::string whyNoTracepoint(std::string_view category, std::string_view name, int code,
                            const TracefsPlaces& places = {});

/// The errno value that libbpf gives where it does not find this tracepoint; 0 where it does.
int tracepointError(const std::string& category, const std::string& name, const TracefsPlaces& places = {});

/// For a probe of these functions in `binary`; `warnings` are libbpf's.
std::string whyNoUprobe(const UserBinary& binary, const std::vector<std::string>& functions, int code,
                        const std::vector<std::string>& warnings);

/// For USDT probe "provider:name".
std::string whyNoUsdt(const UserBinary& binary, const std::string& probe, int code,
                      const std::vector<std::string>& warnings);

/// For fentry and the like, and LSM programs.
std::string whyNotTraced(enum bpf_attach_type type, const std::string& target, bool withCookie, int code);

std::string whyNoRawTracepoint(std::string_view name, int code);

/// `mode` as in AttachTarget.
std::string whyNoXdp(std::string_view mode, int code);

/// Where a place before or after others was asked for.
std::string whyNoOrder(int code);

std::string whyNoNetkit(int code);

std::string whyNoTcFilter(std::uint32_t priority, int code);

std::string whyNoPerfEvent(const PerfEvent& event, int code);

} // namespace btfd::loader
