#pragma once

#include "core/candidates.h"
#include "failure.h"
#include "job.h"
#include "object/relocate_image.h"
#include "open_object.h"
#include "seam.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace btfd::loader {

/// What became of the CO-RE relocations of the object that a job is about. Refers to the object's records and to the
/// resident spec.
class Relocations {
 public:
  /// No relocations.
  Relocations() = default;

  /// Resolves the records of `given` against the spec that this process was lent, and writes the results into its
  /// bytes; libbpf then finds none left to do. io.btfd.NoKernelBtf if something is asked about the kernel and nothing
  /// was lent.
  static Outcome<Relocations> apply(GivenObject& given);

  /// io.btfd.LoadFailed if one that belongs to a program of `object` that is to be loaded has failed: libbpf would then
  /// load code that was not relocated. Names all of them.
  [[nodiscard]] Outcome<void> check(struct bpf_object& object) const;

  /// The poisoned one that the verifier has reached, as `verifierLog` says, in a program with `functions`, called
  /// `program`; or null.
  [[nodiscard]] const core::Relocation* reached(std::string_view program, const std::vector<LoadedFunction>& functions,
                                                std::string_view verifierLog) const;

  /// In words: what is asked, where, and why there is no answer.
  [[nodiscard]] std::string sentence(const core::Relocation& relocation) const;

  /// As io.btfd's type Relocation.
  [[nodiscard]] nlohmann::json record(const core::Relocation& relocation) const;

 private:
  const object::CoreRecords* records_ = nullptr;
  core::Targets targets_;
  std::vector<core::Relocation> relocations_;
};

} // namespace btfd::loader
