#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace btfd::loader {

/// What the section of a program for probes says: "kprobe.multi/tcp_*", "uprobe/libc.so.6:malloc+8".
struct ProbeSection {
  /// "kprobe", "uretprobe.s", "usdt" and so on.
  std::string kind;
  /// What it is for, behind the slash; empty if the section leaves that to the request.
  std::string target;

  explicit ProbeSection(std::string_view section);

  /// Whether it is for binaries of user space rather than for the kernel's functions.
  [[nodiscard]] bool isForUserSpace() const;
  [[nodiscard]] bool isForReturns() const;

  /// Whether one link may carry many functions.
  [[nodiscard]] bool isMulti() const { return kind.contains(".multi"); }

  [[nodiscard]] bool isSession() const { return kind.contains(".session"); }

  /// The kind that single probes of it are: "kretprobe" for "kretprobe.multi".
  [[nodiscard]] std::string singleKind() const;
};

/// A function, and a place in it.
struct FunctionOffset {
  std::string function;
  std::uint64_t offset = 0;
};

/// "function", "function+8" or "function+0x8", or only an offset; nothing if it is none of them.
std::optional<FunctionOffset> readFunctionOffset(std::string_view text);

} // namespace btfd::loader
