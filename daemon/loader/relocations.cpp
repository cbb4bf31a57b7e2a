#include "relocations.h"

#include "diagnosis.h"
#include "object/checked_image.h"

#include <algorithm>
#include <cerrno>

namespace btfd::loader {

namespace {

/// How many records an error carries; more say nothing more to anybody.
constexpr std::size_t kMostRecords = 50;

} // namespace

Outcome<Relocations> Relocations::apply(object::ClientBytes& bytes, std::shared_ptr<const check::TargetKernel> kernel) {
  const auto image = object::CheckedImage::check(bytes);
  if (!image) {
    return invalidObject(image.error().message);
  }
  auto records = object::CoreRecords::read(*image);
  if (!records) {
    return invalidObject(records.error().message);
  }
  Relocations relocations;
  relocations.records_ = std::move(*records);
  if (relocations.records_.needKernel() && kernel != nullptr) {
    relocations.kernel_ = std::move(kernel);
    relocations.targets_ = relocations.kernel_->targets();
    relocations.done_.generation = object::Relocated::kOfOtherBtf;
  } else if (relocations.records_.needKernel()) {
    const LentSpec lent = kernelSpec();
    if (lent.state == KernelSpecState::libbpfsOwn) {
      relocations.leftToLibbpf_ = true;
      return relocations;
    }
    if (lent.spec == nullptr) {
      return noKernelBtf("the object has CO-RE relocations, which need kernel BTF");
    }
    relocations.targets_ = core::Targets(*lent.spec);
    relocations.done_.generation = lent.spec->generation();
  }
  relocations.done_.relocations = relocations.records_.relocate(bytes, relocations.targets_);
  relocations.done_.recordsLength = relocations.records_.length();
  return relocations;
}

Result<Relocations> Relocations::ofKept(object::KeptImage& image) {
  auto records = image.restoreRecords();
  if (!records) {
    return std::unexpected(std::move(records.error()));
  }
  Relocations relocations;
  relocations.records_ = std::move(*records);
  relocations.done_ = image.relocated();
  const LentSpec lent = kernelSpec();
  if (lent.spec != nullptr) {
    relocations.targets_ = core::Targets(*lent.spec);
  }
  relocations.areModulesResident_ = lent.spec != nullptr && lent.spec->generation() == relocations.done_.generation;
  return relocations;
}

bool Relocations::areTypesResident(const core::Relocation& relocation) const {
  if (done_.generation == object::Relocated::kOfOtherBtf) {
    return kernel_ != nullptr;
  }
  // Ids of vmlinux are the same in each generation of the running kernel's BTF; those of modules may not be.
  return areModulesResident_ || (relocation.type.target == 0 && relocation.other.target == 0);
}

bool Relocations::isForAll() const {
  return !leftToLibbpf_ && kernel_ == nullptr &&
         std::ranges::none_of(done_.relocations, [](const core::Relocation& relocation) {
           return relocation.outcome == core::Outcome::failed;
         });
}

Outcome<void> Relocations::check(struct bpf_object& object) const {
  const auto isToBeLoaded = [&](const core::Relocation& relocation) {
    if (records_.isShared(relocation)) {
      return true;
    }
    const std::string function(records_.functionOf(relocation));
    const struct bpf_program* program = bpf_object__find_program_by_name(&object, function.c_str());
    return program != nullptr && bpf_program__autoload(program);
  };
  const core::Relocation* first = nullptr;
  std::size_t failed = 0;
  auto described = nlohmann::json::array();
  core::NearNames near = nearNames();
  for (const core::Relocation& relocation : done_.relocations) {
    if (relocation.outcome == core::Outcome::failed && isToBeLoaded(relocation)) {
      first = first == nullptr ? &relocation : first;
      if (++failed <= kMostRecords) {
        described.push_back(record(relocation, near));
      }
    }
  }
  if (first == nullptr) {
    return {};
  }
  nlohmann::json parameters;
  parameters["message"] = "cannot relocate the object" +
                          std::string(kernel_ == nullptr ? "" : " for the BTF that came with the request") + ": " +
                          sentence(*first) + (failed > 1 ? " (and " + std::to_string(failed - 1) + " more)" : "");
  parameters["stage"] = "relocation";
  parameters["errno"] = EINVAL;
  parameters["errnoName"] = errnoName(EINVAL);
  if (const auto function = records_.functionOf(*first); !function.empty()) {
    parameters["program"] = function;
  }
  parameters["relocations"] = std::move(described);
  return std::unexpected(Failure{"io.btfd.LoadFailed", std::move(parameters)});
}

const core::Relocation* Relocations::reached(std::string_view program, const std::vector<LoadedFunction>& functions,
                                             std::string_view verifierLog) const {
  const auto instruction = poisonedInstruction(verifierLog);
  if (!instruction || done_.relocations.empty()) {
    return nullptr;
  }
  std::string_view function = program;
  std::uint32_t begin = 0;
  for (const LoadedFunction& each : functions) {
    const struct btf_type* type = records_.types().find(each.type);
    if (each.instruction <= *instruction && each.instruction >= begin && type != nullptr) {
      begin = each.instruction;
      function = records_.types().string(type->name_off);
    }
  }
  const auto found = std::ranges::find_if(done_.relocations, [&](const core::Relocation& relocation) {
    return relocation.outcome == core::Outcome::poisoned && records_.functionOf(relocation) == function &&
           records_.instructionOf(relocation) == *instruction - begin;
  });
  return found == done_.relocations.end() ? nullptr : &*found;
}

std::string Relocations::sentence(const core::Relocation& relocation) const {
  core::NearNames near = nearNames();
  return object::sentence(report(relocation, near));
}

object::RelocationReport Relocations::report(const core::Relocation& relocation, core::NearNames& near) const {
  if (areTypesResident(relocation)) {
    return object::describe(records_, targets_, relocation, near);
  }
  core::Relocation withoutTypes = relocation;
  withoutTypes.type = {};
  return object::describe(records_, targets_, withoutTypes,
                          "the kernel BTF that it was resolved against is not resident any more");
}

nlohmann::json Relocations::record(const core::Relocation& relocation, core::NearNames& near) const {
  return object::toJson(report(relocation, near));
}

} // namespace btfd::loader
