#include "report_json.h"

#include <nlohmann/json.hpp>

namespace btfd::check {

nlohmann::json toJson(const Finding& finding) {
  nlohmann::json described;
  described["severity"] = severityName(finding.severity);
  described["topic"] = topicName(finding.topic);
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) {
      described[key] = value;
    }
  };
  add("program", finding.program);
  add("map", finding.map);
  add("name", finding.name);
  described["message"] = finding.message;
  if (finding.relocation) {
    described["relocation"] = object::toJson(*finding.relocation);
  }
  return described;
}

nlohmann::json toJson(const Report& report) {
  nlohmann::json described;
  described["verdict"] = verdictName(report.verdict);
  described["findings"] = nlohmann::json::array();
  for (const Finding& finding : report.findings) {
    described["findings"].push_back(toJson(finding));
  }
  described["findingsLeftOut"] = report.findingsLeftOut;
  described["resolvedRelocations"] = report.relocationCounts.resolved;
  described["poisonedRelocations"] = report.relocationCounts.poisoned;
  described["failedRelocations"] = report.relocationCounts.failed;
  described["relocations"] = nlohmann::json::array();
  for (const object::RelocationReport& relocation : report.relocations) {
    described["relocations"].push_back(object::toJson(relocation));
  }
  return described;
}

} // namespace btfd::check
