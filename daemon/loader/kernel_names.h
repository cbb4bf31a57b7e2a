#pragma once

#include <string>
#include <string_view>

namespace btfd::loader {

// What the kernel BTF that this process was lent knows of names. Without any, nothing is known and nothing said.

/// "; did you mean 'a' or 'b'?" with those of the kernel's tracepoints (typedefs btf_trace_NAME) that `name` may have
/// been meant for; empty if there are none.
std::string tracepointsLike(std::string_view name);

/// Whether vmlinux or a module has a type of BTF kind `kind` called `name`. True where no kernel BTF is there to ask.
bool kernelHas(std::string_view name, unsigned kind);

/// As tracepointsLike, with names of types of BTF kind `kind` that begin with `prefix`, which is cut off.
std::string kernelNamesLike(std::string_view name, std::string_view prefix, unsigned kind);

} // namespace btfd::loader
