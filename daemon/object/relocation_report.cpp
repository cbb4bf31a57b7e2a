#include "relocation_report.h"

#include "core/explain.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace btfd::object {

RelocationReport describe(const CoreRecords& records, const core::Targets& targets, const core::Relocation& relocation,
                          core::NearNames& near) {
  return describe(records, targets, relocation, core::explain(records.types(), targets, relocation, near));
}

RelocationReport describe(const CoreRecords& records, const core::Targets& targets, const core::Relocation& relocation,
                          std::string reason) {
  const auto types = records.types();
  RelocationReport report;
  report.function = records.functionOf(relocation);
  report.instruction = records.instructionOf(relocation);
  report.kind = core::kindName(relocation.record.kind);
  report.access = core::accessPath(types, relocation.record);
  report.outcome = relocation.outcome;
  report.candidates = relocation.candidates;
  report.value = relocation.value;
  report.localValue = relocation.localValue;
  if (relocation.type.id != 0) {
    const core::Target& target = targets[relocation.type.target];
    report.targetType = core::typeName(target.types, relocation.type.id);
    report.targetTypeId = relocation.type.id;
    report.targetBtf = target.name;
  }
  report.reason = std::move(reason);
  return report;
}

std::string sentence(const RelocationReport& report) {
  return (report.function.empty() ? std::string("in no function") : "in '" + report.function + "'") + ", instruction " +
         std::to_string(report.instruction) + ", CO-RE relocation " + std::string(report.kind) + " of " +
         report.access + ": " + report.reason;
}

nlohmann::json toJson(const RelocationReport& report) {
  nlohmann::json record;
  record["program"] = report.function;
  record["instruction"] = report.instruction;
  record["kind"] = report.kind;
  record["access"] = report.access;
  record["outcome"] = core::outcomeName(report.outcome);
  record["candidates"] = report.candidates;
  if (report.outcome == core::Outcome::resolved) {
    // Varlink's only kind of integer has a sign.
    record["value"] = static_cast<std::int64_t>(report.value);
    record["localValue"] = static_cast<std::int64_t>(report.localValue);
  }
  if (report.targetTypeId != 0) {
    record["targetType"] = report.targetType;
    record["targetTypeId"] = report.targetTypeId;
    record["targetBtf"] = report.targetBtf;
  }
  if (report.outcome != core::Outcome::resolved) {
    record["reason"] = report.reason;
  }
  return record;
}

} // namespace btfd::object
