#pragma once

#include "check/report.h"
#include "check/target_kernel.h"
#include "core/candidates.h"
#include "core/kernel_names.h"
#include "failure.h"
#include "job.h"
#include "object/client_bytes.h"
#include "object/kept_image.h"
#include "object/relocate_image.h"
#include "object/relocation_report.h"
#include "seam.h"

#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace btfd::loader {

/// What became of the CO-RE relocations of the object that a job is about. Refers to the object's bytes and to the
/// resident spec.
class Relocations {
 public:
  /// No relocations.
  Relocations() = default;

  /// Checks the object in `bytes`, resolves its records against the spec that this process was lent, and writes the
  /// results into `bytes`; libbpf then finds none left to do. io.btfd.InvalidObject for what is wrong with the object,
  /// io.btfd.NoKernelBtf if something is asked about the kernel and nothing was lent.
  ///
  /// `kernel`: what to resolve them against instead.
  static Outcome<Relocations> apply(object::ClientBytes& bytes,
                                    std::shared_ptr<const check::TargetKernel> kernel = nullptr);

  /// Those of an object that was relocated before, which libbpf must not use any more. Of what was asked of a kernel
  /// BTF that is not lent to this process, or not any more, the types that gave the answers are left out.
  static Result<Relocations> ofKept(object::KeptImage& image);

  /// io.btfd.LoadFailed if one that belongs to a program of `object` that is to be loaded has failed: libbpf would then
  /// load code that was not relocated. Names all of them.
  [[nodiscard]] Outcome<void> check(struct bpf_object& object) const;

  /// The poisoned one that the verifier has reached, as `verifierLog` says, in a program with `functions`, called
  /// `program`; or null.
  [[nodiscard]] const core::Relocation* reached(std::string_view program, const std::vector<LoadedFunction>& functions,
                                                std::string_view verifierLog) const;

  /// In words: what is asked, where, and why there is no answer.
  [[nodiscard]] std::string sentence(const core::Relocation& relocation) const;

  /// For records of several: names are searched for once. Refers to this.
  [[nodiscard]] core::NearNames nearNames() const { return core::NearNames(targets_, check::kMostNearNames); }

  /// What cannot satisfy a relocation that was poisoned, in words.
  [[nodiscard]] std::string_view whoLacksIt() const {
    return kernel_ == nullptr ? "this kernel" : "the BTF that came with the request";
  }

  [[nodiscard]] const std::vector<core::Relocation>& all() const { return done_.relocations; }

  /// What is to be kept with the object's bytes.
  [[nodiscard]] const object::Relocated& done() const { return done_; }

  /// Whether the bytes that `apply` was given are what anybody's load of the same object would make of it now: none of
  /// the relocations has failed, and none is left to libbpf.
  [[nodiscard]] bool isForAll() const;

  /// As io.btfd's type Relocation.
  [[nodiscard]] nlohmann::json record(const core::Relocation& relocation, core::NearNames& near) const;

 private:
  object::CoreRecords records_;
  core::Targets targets_;
  object::Relocated done_;
  bool leftToLibbpf_ = false;
  /// Whether `targets_` has the same modules as when the relocations were resolved.
  bool areModulesResident_ = true;

  /// BTF that came with the request.
  std::shared_ptr<const check::TargetKernel> kernel_;

  [[nodiscard]] bool areTypesResident(const core::Relocation& relocation) const;
  [[nodiscard]] object::RelocationReport report(const core::Relocation& relocation, core::NearNames& near) const;
};

} // namespace btfd::loader
