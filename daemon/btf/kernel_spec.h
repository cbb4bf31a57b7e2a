#pragma once

#include "base/error.h"
#include "handle.h"
#include "name_index.h"
#include "parse_btf.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace btfd::btf {

/// Where a KernelSpec comes from.
struct KernelSpecSource {
  /// Where the kernel shows its BTF: "vmlinux" and a file for each module (Documentation/ABI/testing/sysfs-kernel-btf).
  std::string directory = "/sys/kernel/btf";
  /// For kernels that show none: a file with vmlinux BTF, raw or in an ELF file. May be empty.
  std::string fallbackPath;
  /// Whether to read the BTF of modules.
  bool modules = true;
};

/// Split BTF of one kernel module.
struct ModuleBtf {
  std::string name;
  std::uint64_t bytes = 0;
  /// Null if it was left out.
  BtfHandle btf;
  /// What the module adds to vmlinux.
  NameIndex index;
  /// Why it was left out.
  std::string error;

  /// Number of types that the module adds to those of `vmlinux`.
  [[nodiscard]] std::uint32_t typeCount(const struct ::btf& vmlinux) const;
};

/// The running kernel's BTF: vmlinux, its modules, and indexes of their names.
///
/// Immutable once built: it is handed out as shared_ptr<const KernelSpec>, and a change of modules makes a new one. Any
/// number of threads may read it.
class KernelSpec {
 public:
  /// Parses and indexes what `source` names. A broken module is left out, with its error; an error is only what leaves
  /// us without vmlinux BTF (code ENOENT where the kernel shows none and there is no fallback).
  /// `generation` is what generation() will say.
  static Result<std::shared_ptr<const KernelSpec>> build(const KernelSpecSource& source, std::uint64_t generation);

  [[nodiscard]] const struct ::btf& vmlinux() const { return *vmlinux_; }

  [[nodiscard]] const NameIndex& index() const { return index_; }

  [[nodiscard]] std::span<const ModuleBtf> modules() const { return modules_; }

  /// The module called `name` if it is resident, or null.
  [[nodiscard]] const ModuleBtf* findModule(std::string_view name) const;

  /// File that vmlinux BTF was read from.
  [[nodiscard]] const std::string& path() const { return path_; }

  /// Whether vmlinux BTF is mapped, so that its bytes are the kernel's own pages (Linux 6.16 and later).
  [[nodiscard]] bool mapped() const { return mapped_; }

  /// Size of vmlinux BTF in bytes.
  [[nodiscard]] std::uint64_t vmlinuxBytes() const;

  /// Memory of our own that all of it takes, in bytes: indexes, libbpf's tables of type offsets, and copies of BTF.
  [[nodiscard]] std::uint64_t privateBytes() const;

  [[nodiscard]] std::uint64_t generation() const { return generation_; }

  [[nodiscard]] std::chrono::system_clock::time_point builtAt() const { return builtAt_; }

  [[nodiscard]] std::chrono::microseconds parseDuration() const { return parseDuration_; }

  [[nodiscard]] std::chrono::microseconds indexDuration() const { return indexDuration_; }

 private:
  KernelSpec() = default;

  Result<void> loadVmlinux(const KernelSpecSource& source);
  Result<ParsedBtf> parseVmlinux(const KernelSpecSource& source);
  void loadModules(const std::string& directory);

  BtfHandle vmlinux_;
  KindLayouts layouts_;
  NameIndex index_;
  // After vmlinux_, so that split BTFs go before their base.
  std::vector<ModuleBtf> modules_;
  std::string path_;
  bool mapped_ = false;
  std::uint64_t generation_ = 0;
  std::chrono::system_clock::time_point builtAt_;
  std::chrono::microseconds parseDuration_{};
  std::chrono::microseconds indexDuration_{};
};

/// Names and sizes of the module BTFs below `directory`, by name: what tells two generations apart without parsing.
std::vector<std::pair<std::string, std::uint64_t>> listModules(const std::string& directory);

} // namespace btfd::btf
