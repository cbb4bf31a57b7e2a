#include "report.h"

#include <algorithm>
#include <utility>

namespace btfd::check {

void collect(std::vector<Finding>& findings, Finding finding) {
  if (findings.size() < kMostCollected) {
    findings.push_back(std::move(finding));
  } else if (finding.severity > findings.back().severity) {
    findings.back() = std::move(finding);
  }
}

void RelocationCounts::add(core::Outcome outcome) {
  switch (outcome) {
  case core::Outcome::resolved:
    ++resolved;
    break;
  case core::Outcome::poisoned:
    ++poisoned;
    break;
  case core::Outcome::failed:
    ++failed;
    break;
  }
}

void Report::conclude(std::size_t most) {
  std::ranges::stable_sort(findings, std::ranges::greater{}, &Finding::severity);
  if (!findings.empty()) {
    verdict = std::max(verdict, static_cast<Verdict>(findings.front().severity));
  }
  if (findings.size() > most) {
    findingsLeftOut += findings.size() - most;
    findings.resize(most);
    findings.shrink_to_fit(); // a report is kept while others are made
  }
}

std::string_view severityName(Severity severity) {
  switch (severity) {
  case Severity::note:
    return "note";
  case Severity::warning:
    return "warning";
  case Severity::unknown:
    return "unknown";
  case Severity::error:
    break;
  }
  return "error";
}

std::string_view topicName(Topic topic) {
  switch (topic) {
  case Topic::object:
    return "object";
  case Topic::programType:
    return "programType";
  case Topic::attachType:
    return "attachType";
  case Topic::attachTarget:
    return "attachTarget";
  case Topic::helper:
    return "helper";
  case Topic::mapType:
    return "mapType";
  case Topic::structOps:
    return "structOps";
  case Topic::kernelFunction:
    return "kernelFunction";
  case Topic::kernelSymbol:
    return "kernelSymbol";
  case Topic::configuration:
    return "configuration";
  case Topic::relocation:
    break;
  }
  return "relocation";
}

std::string_view verdictName(Verdict verdict) {
  switch (verdict) {
  case Verdict::loads:
    return "loads";
  case Verdict::warning:
    return "warning";
  case Verdict::unknown:
    return "unknown";
  case Verdict::fails:
    break;
  }
  return "fails";
}

} // namespace btfd::check
