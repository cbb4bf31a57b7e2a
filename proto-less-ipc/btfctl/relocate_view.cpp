#include "btfctl/relocate_view.h"

#include "btfctl/text.h"
#include "check/report_json.h"

#include <map>
#include <utility>

namespace btfd::btfctl {
namespace {

std::string plural(std::size_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string sentence(const check::Finding& finding) {
  return (finding.program.empty() ? "" : finding.program + ": ") + finding.message;
}

/// A line for each reason.
std::string needLines(const std::vector<offline::KernelBtfNeed>& needs) {
  std::map<std::string, std::vector<std::string>> names;
  for (const offline::KernelBtfNeed& need : needs) {
    names[need.reason].push_back(printable(need.name));
  }
  std::string text;
  for (const auto& [reason, these] : names) {
    text += "  still needs the kernel's own BTF for " + reason + ": " + listed(these) + "\n";
  }
  return text;
}

} // namespace

std::string findingLines(const std::string& heading, const std::vector<check::Finding>& findings) {
  std::vector<std::string> sentences;
  std::map<std::string, std::size_t> times;
  for (const check::Finding& finding : findings) {
    if (++times[sentence(finding)] == 1) {
      sentences.push_back(sentence(finding));
    }
  }
  std::string text;
  for (const std::string& each : sentences) {
    text += heading + printable(each) +
            (times[each] > 1 ? " (" + std::to_string(times[each]) + " times)" : std::string()) + "\n";
  }
  return text;
}

nlohmann::json toJson(const std::vector<check::Finding>& findings) {
  auto array = nlohmann::json::array();
  for (const check::Finding& finding : findings) {
    array.push_back(check::toJson(finding));
  }
  return array;
}

std::string relocateView(const offline::RelocatedObject& object, const std::string& name, const std::string& kernel) {
  const check::RelocationCounts& counts = object.counts;
  const std::size_t poisoned = counts.poisoned + counts.failed;
  std::string text = printable(name) + " for " + printable(kernel) + ": " +
                     plural(counts.resolved, "CO-RE relocation") + " applied" +
                     (poisoned == 0 ? "" : ", " + std::to_string(poisoned) + " poisoned") + "\n";
  text += findingLines("  poisoned: ", object.poisoned);
  text += needLines(object.needs);
  return text;
}

nlohmann::json relocateDocument(const offline::RelocatedObject& object) {
  auto needs = nlohmann::json::array();
  for (const offline::KernelBtfNeed& need : object.needs) {
    needs.push_back({{"name", need.name}, {"reason", need.reason}});
  }
  return {{"resolvedRelocations", object.counts.resolved},
          {"poisonedRelocations", object.counts.poisoned + object.counts.failed},
          {"findings", toJson(object.poisoned)},
          {"needsKernelBtf", std::move(needs)}};
}

Failure relocationFailure(const offline::Refusal& refusal, const std::string& kernel) {
  const std::string more = refusal.size() > 1 ? " (and " + std::to_string(refusal.size() - 1) + " more)" : "";
  return {.status = ExitStatus::Failed,
          .name = "btfctl.Failed",
          .parameters = {{"message", "cannot be relocated for " + kernel + ": " + sentence(refusal.front()) + more},
                         {"findings", toJson(refusal)}}};
}

} // namespace btfd::btfctl
