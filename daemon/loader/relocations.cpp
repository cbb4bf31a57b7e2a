#include "relocations.h"

#include "diagnosis.h"
#include "object/relocation_report.h"

#include <algorithm>
#include <cerrno>

namespace btfd::loader {

namespace {

/// How many records an error carries; more say nothing more to anybody.
constexpr std::size_t kMostRecords = 50;

} // namespace

Outcome<Relocations> Relocations::apply(GivenObject& given) {
  Relocations relocations;
  relocations.records_ = &given.core;
  if (given.core.needKernel()) {
    const LentSpec lent = kernelSpec();
    if (lent.state == KernelSpecState::libbpfsOwn) {
      return relocations; // libbpf does it
    }
    if (lent.spec == nullptr) {
      return noKernelBtf("the object has CO-RE relocations, which need kernel BTF");
    }
    relocations.targets_ = core::Targets(*lent.spec);
  }
  relocations.relocations_ = given.core.relocate(given.bytes, relocations.targets_);
  return relocations;
}

Outcome<void> Relocations::check(struct bpf_object& object) const {
  const auto isToBeLoaded = [&](const core::Relocation& relocation) {
    if (records_->isShared(relocation)) {
      return true;
    }
    const std::string function(records_->functionOf(relocation));
    const struct bpf_program* program = bpf_object__find_program_by_name(&object, function.c_str());
    return program != nullptr && bpf_program__autoload(program);
  };
  const core::Relocation* first = nullptr;
  std::size_t failed = 0;
  auto described = nlohmann::json::array();
  for (const core::Relocation& relocation : relocations_) {
    if (relocation.outcome == core::Outcome::failed && isToBeLoaded(relocation)) {
      first = first == nullptr ? &relocation : first;
      if (++failed <= kMostRecords) {
        described.push_back(record(relocation));
      }
    }
  }
  if (first == nullptr) {
    return {};
  }
  nlohmann::json parameters;
  parameters["message"] = "cannot relocate the object: " + sentence(*first) +
                          (failed > 1 ? " (and " + std::to_string(failed - 1) + " more)" : "");
  parameters["stage"] = "relocation";
  parameters["errno"] = EINVAL;
  parameters["errnoName"] = errnoName(EINVAL);
  if (const auto function = records_->functionOf(*first); !function.empty()) {
    parameters["program"] = function;
  }
  parameters["relocations"] = std::move(described);
  return std::unexpected(Failure{"io.btfd.LoadFailed", std::move(parameters)});
}

const core::Relocation* Relocations::reached(std::string_view program, const std::vector<LoadedFunction>& functions,
                                             std::string_view verifierLog) const {
  const auto instruction = poisonedInstruction(verifierLog);
  if (!instruction || relocations_.empty()) {
    return nullptr;
  }
  std::string_view function = program;
  std::uint32_t begin = 0;
  for (const LoadedFunction& each : functions) {
    const struct btf_type* type = records_->types().find(each.type);
    if (each.instruction <= *instruction && each.instruction >= begin && type != nullptr) {
      begin = each.instruction;
      function = records_->types().string(type->name_off);
    }
  }
  const auto found = std::ranges::find_if(relocations_, [&](const core::Relocation& relocation) {
    return relocation.outcome == core::Outcome::poisoned && records_->functionOf(relocation) == function &&
           records_->instructionOf(relocation) == *instruction - begin;
  });
  return found == relocations_.end() ? nullptr : &*found;
}

std::string Relocations::sentence(const core::Relocation& relocation) const {
  return object::sentence(object::describe(*records_, targets_, relocation));
}

nlohmann::json Relocations::record(const core::Relocation& relocation) const {
  return object::toJson(object::describe(*records_, targets_, relocation));
}

} // namespace btfd::loader
