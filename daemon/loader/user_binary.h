#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace btfd::loader {

/// A program or library to be probed.
struct UserBinary {
  /// For people: as the client has named it, and in which process's file system it is.
  std::string name;
  /// For libbpf and the kernel.
  std::string path;
  /// What `path` leads to, if it goes through this.
  UniqueFd file;
};

/// The binary that `name` names, a path or, without a slash, something that libbpf looks for in the usual directories.
/// With `rootOf`, both are looked up in that process's root directory and mounts, so that no link leads out of them.
/// The error says what is wrong with it.
Result<UserBinary> findBinary(const std::string& name, std::optional<pid_t> rootOf);

/// Names of the functions that `binary` has and could be probed at, each once; none where it is no ELF file. Those in
/// its table of symbols, or if it has been stripped, those that it exports: as libbpf does it for patterns.
std::vector<std::string> functionsIn(const UserBinary& binary);

/// Where in the file these functions begin, in their order; nothing if one of them is in neither of its tables.
/// libbpf's own look-up of several (elf_resolve_syms_offsets in 1.7) finds none where the table of symbols has been
/// stripped.
std::vector<unsigned long> offsetsOf(const UserBinary& binary, const std::vector<std::string>& functions);

/// The USDT probes in `binary`, as "provider:name", each once.
std::vector<std::string> usdtProbesIn(const UserBinary& binary);

} // namespace btfd::loader
