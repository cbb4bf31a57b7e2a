#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "btf/handle.h"
#include "code.h"
#include "core/types.h"
#include "object/checked_image.h"
#include "object/client_bytes.h"
#include "object/opened_object.h"
#include "object/relocate_image.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace btfd::check {

/// Something that the object declares and the kernel is to supply.
struct Extern {
  std::string_view name;
  /// Of the BTF FUNC or VAR.
  core::TypeId type = 0;
  bool isFunction = false;
  /// May be missing: its address is then 0.
  bool isWeak = false;
  /// From section .kconfig: its value comes from the kernel's configuration.
  bool isConfiguration = false;
};

/// A variable in a section .struct_ops or .struct_ops.link.
struct StructOps {
  std::string_view variable;
  /// Its struct.
  core::TypeId type = 0;
  /// Where it lies in its section, in bytes, and what it holds.
  std::uint64_t offset = 0;
  std::span<const std::byte> content;
  /// What is filled in in all of its section: addresses of programs.
  std::vector<object::Reference> references;
};

/// An object as it is before any kernel is in sight: read and taken apart once, for any number of kernels.
class ObjectToCheck {
 public:
  /// The largest object file that is read.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20U;

  /// Reads the object in `file`, which may be in either byte order. The error says what is wrong with it, for whatever
  /// kernel. libbpf is silent meanwhile, so one thread only may use it.
  static Result<ObjectToCheck> read(BorrowedFd file, std::uint64_t limit = kMostBytes);

  [[nodiscard]] std::span<const std::byte> image() const { return bytes_.bytes(); }

  [[nodiscard]] const object::CoreRecords& records() const { return records_; }

  /// As libbpf has opened it; nothing is loaded.
  [[nodiscard]] const struct bpf_object& opened() const { return *opened_; }

  [[nodiscard]] const Code& code() const { return code_; }

  /// Its BTF as it is in the file; nothing if it has none.
  [[nodiscard]] std::optional<core::Types> types() const;

  /// By name.
  [[nodiscard]] std::span<const Extern> externs() const { return externs_; }

  /// The one called `name`, or null.
  [[nodiscard]] const Extern* findExtern(std::string_view name) const;

  [[nodiscard]] std::span<const StructOps> structOps() const { return structOps_; }

  /// The programs to be loaded: all but those in sections "?...".
  [[nodiscard]] std::vector<const struct bpf_program*> programs() const;

 private:
  explicit ObjectToCheck(object::ClientBytes bytes) : bytes_(std::move(bytes)) {}

  Result<void> readBtf(const object::CheckedImage& image);
  void readSection(const struct btf_type& section, const object::CheckedImage& image);
  void readExtern(const struct btf_var_secinfo& entry, bool isConfiguration);
  void readStructOps(const struct btf_var_secinfo& entry, const object::Section& section,
                     const object::CheckedImage& image);

  object::ClientBytes bytes_;
  object::CoreRecords records_;
  object::ObjectHandle opened_;
  Code code_;
  btf::BtfHandle btf_;
  std::vector<Extern> externs_;
  std::vector<StructOps> structOps_;
};

} // namespace btfd::check
