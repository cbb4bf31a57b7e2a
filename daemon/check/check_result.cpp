#include "check_result.h"

#include "report_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace btfd::check {

nlohmann::json toJson(const CheckedKernel& kernel) {
  nlohmann::json described;
  described["name"] = kernel.name;
  if (!kernel.path.empty()) {
    described["path"] = kernel.path;
  }
  described["modules"] = kernel.modules;
  described["leftOut"] = nlohmann::json::array();
  for (const Error& error : kernel.leftOut) {
    described["leftOut"].push_back(error.message);
  }
  if (kernel.error) {
    described["error"] = kernel.error->message;
  }
  return described;
}

bool CheckResult::isAnythingUnreadable() const {
  const auto isUnreadable = [](const auto& each) { return each.error.has_value(); };
  return std::ranges::any_of(kernels, isUnreadable) || std::ranges::any_of(objects, isUnreadable);
}

bool CheckResult::isAnyModuleLeftOut() const {
  return std::ranges::any_of(kernels, [](const CheckedKernel& kernel) { return !kernel.leftOut.empty(); });
}

Verdict CheckResult::worst() const {
  auto worst = isAnythingUnreadable() ? Verdict::unknown : Verdict::loads;
  for (const CheckedObject& object : objects) {
    for (const Report& report : object.reports) {
      worst = std::max(worst, report.verdict);
    }
  }
  return worst;
}

nlohmann::json toJson(const CheckResult& result) {
  nlohmann::json document;
  document["verdict"] = verdictName(result.worst());
  document["kernels"] = nlohmann::json::array();
  std::vector<const CheckedKernel*> readable;
  for (const CheckedKernel& kernel : result.kernels) {
    document["kernels"].push_back(toJson(kernel));
    if (!kernel.error) {
      readable.push_back(&kernel);
    }
  }
  document["objects"] = nlohmann::json::array();
  for (const CheckedObject& object : result.objects) {
    nlohmann::json described;
    described["name"] = object.name;
    if (!object.path.empty()) {
      described["path"] = object.path;
    }
    described["reports"] = nlohmann::json::array();
    for (std::size_t i = 0; i < object.reports.size(); ++i) {
      nlohmann::json report = toJson(object.reports[i]);
      report["kernel"] = readable[i]->name;
      described["reports"].push_back(std::move(report));
    }
    if (object.error) {
      described["error"] = object.error->message;
    }
    document["objects"].push_back(std::move(described));
  }
  return document;
}

} // namespace btfd::check
