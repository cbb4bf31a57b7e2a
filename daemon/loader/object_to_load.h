#pragma once

#include "check/target_kernel.h"
#include "descriptors.h"
#include "failure.h"
#include "job.h"
#include "object/client_bytes.h"
#include "object/kept_image.h"
#include "relocations.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace btfd::loader {

/// The object that a Load is about, from the client's file to what libbpf opens and what the front keeps.
class ObjectToLoad {
 public:
  /// Reads what `request`, as runLoadJob takes it, names, and applies its CO-RE relocations; or takes what was kept of
  /// the same object, for the kernel BTF that this process was lent, if the request comes with that.
  static Outcome<ObjectToLoad> read(const nlohmann::json& request, RequestDescriptors& descriptors,
                                    const JobLimits& limits);

  /// SHA-256 of the file as the client gave it.
  [[nodiscard]] const std::string& digest() const { return digest_; }

  /// The relocated object.
  [[nodiscard]] std::span<const std::byte> bytes() const { return kept_ ? kept_->object() : given_.bytes(); }

  /// io.btfd.LoadFailed if a relocation has failed in a program of `object` that is to be loaded.
  [[nodiscard]] Outcome<void> checkRelocations(struct bpf_object& object) const { return relocations_.check(object); }

  /// What became of the relocations, also of those that were applied by a job before this one. libbpf must not be given
  /// bytes() any more then.
  [[nodiscard]] const Relocations& relocations();

  /// Makes what the front is to keep, unless it has that already.
  Outcome<void> makeImage();

  /// Puts it into `reply`, as runLoadJob's has it.
  void moveImageTo(JobReply& reply);

 private:
  ObjectToLoad(object::ClientBytes given, BorrowedFd file)
      : given_(std::move(given)), file_(file), digest_(given_.digest()) {}

  Outcome<void> takeKept(const nlohmann::json& request, const RequestDescriptors& descriptors);
  [[nodiscard]] Result<UniqueFd> sealedFile() const;

  object::ClientBytes given_;
  BorrowedFd file_;
  std::string digest_;
  std::optional<object::KeptImage> kept_;
  /// Empty with `kept_`, until they are asked for.
  Relocations relocations_;
  UniqueFd image_;
};

} // namespace btfd::loader
