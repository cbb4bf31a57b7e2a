#include "relocated_object.h"

#include "check/check_object.h"

#include <utility>

namespace btfd::offline {

namespace {

/// Whether `finding` keeps the object from being relocated: a relocation that fails, or an object of another byte order
/// than the kernel's. What else a check finds wrong is the kernel's to say when it is loaded.
bool isRefusal(const check::Finding& finding) {
  if (finding.severity != check::Severity::error) {
    return false;
  }
  return finding.topic == check::Topic::object ||
         (finding.relocation && finding.relocation->outcome == core::Outcome::failed);
}

} // namespace

std::expected<RelocatedObject, Refusal> relocateObject(const check::ObjectToCheck& object,
                                                       const check::TargetKernel& kernel) {
  check::Report report = check::checkObject(object, kernel);
  RelocatedObject result;
  Refusal refusal;
  for (check::Finding& finding : report.findings) {
    if (isRefusal(finding)) {
      refusal.push_back(std::move(finding));
    } else if (finding.topic == check::Topic::relocation) {
      result.poisoned.push_back(std::move(finding));
    }
  }
  if (!refusal.empty()) {
    return std::unexpected(std::move(refusal));
  }
  result.counts = report.relocationCounts;
  result.needs = kernelBtfNeeds(object);
  const auto original = object.image();
  result.image.assign(original.begin(), original.end());
  for (const core::Relocation& relocation : object.records().resolve(result.image, kernel.targets())) {
    if (relocation.outcome == core::Outcome::failed) {
      object.records().poison(result.image, relocation);
    }
  }
  object.records().drop(result.image);
  return result;
}

} // namespace btfd::offline
