#include "btfctl/check_view.h"

#include "btfctl/table.h"
#include "btfctl/text.h"
#include "check/report_json.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace btfd::btfctl {
namespace {

using check::Finding;
using check::FoundKernel;
using check::Severity;
using nlohmann::json;

/// The short names, or the long one where a short one is not the only of its kind.
std::vector<std::string> distinct(const std::vector<std::string>& shortNames,
                                  const std::vector<std::string>& longNames) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < shortNames.size(); ++i) {
    const bool isOnly = std::ranges::count(shortNames, shortNames[i]) == 1;
    names.push_back(printable(isOnly ? shortNames[i] : longNames[i]));
  }
  return names;
}

std::vector<std::string> kernelLabels(const CheckResult& result) {
  std::vector<std::string> shortNames;
  std::vector<std::string> longNames;
  for (const FoundKernel& kernel : result.kernels) {
    if (kernel.kernel) {
      shortNames.push_back((*kernel.kernel)->name());
      longNames.push_back(kernel.path);
    }
  }
  return distinct(shortNames, longNames);
}

std::vector<std::string> objectLabels(const CheckResult& result) {
  std::vector<std::string> shortNames;
  std::vector<std::string> longNames;
  for (const CheckedObject& object : result.objects) {
    shortNames.push_back(std::filesystem::path(object.path).filename().string());
    longNames.push_back(object.path);
  }
  return distinct(shortNames, longNames);
}

std::string_view heading(Severity severity) {
  return severity == Severity::error ? "fails" : check::severityName(severity);
}

/// "program: message", or the map's name in front, or only the message.
std::string findingText(const Finding& finding) {
  const std::string subject = !finding.program.empty() ? finding.program : finding.map;
  return printable(subject.empty() ? finding.message : subject + ": " + finding.message);
}

/// The reasons of one object, the heaviest first; what is the same on several kernels only once.
std::string reasons(const CheckedObject& object, const std::vector<std::string>& kernels, bool verbose) {
  struct Reason {
    Severity severity;
    std::string text;
    std::vector<std::size_t> kernels;
  };

  std::vector<Reason> found;
  std::map<std::pair<Severity, std::string>, std::size_t> known;
  for (std::size_t kernel = 0; kernel < object.reports.size(); ++kernel) {
    for (const Finding& finding : object.reports[kernel].findings) {
      if (finding.severity == Severity::note && !verbose) {
        continue;
      }
      const auto [at, isNew] = known.try_emplace({finding.severity, findingText(finding)}, found.size());
      if (isNew) {
        found.push_back({.severity = finding.severity, .text = at->first.second, .kernels = {}});
      }
      if (auto& on = found[at->second].kernels; on.empty() || on.back() != kernel) {
        on.push_back(kernel);
      }
    }
  }
  std::ranges::stable_sort(found, std::ranges::greater{}, &Reason::severity);
  std::string text;
  for (const Reason& reason : found) {
    text += "  " + std::string(heading(reason.severity));
    if (kernels.size() > 1) {
      const bool onAll = reason.kernels.size() == kernels.size();
      text += onAll ? " on all" : " on ";
      for (std::size_t i = 0; i < reason.kernels.size() && !onAll; ++i) {
        text += (i == 0 ? "" : ", ") + kernels[reason.kernels[i]];
      }
    }
    text += ": " + reason.text + "\n";
  }
  return text;
}

json errorsOf(const std::vector<Error>& errors) {
  json list = json::array();
  for (const Error& error : errors) {
    list.push_back(error.message);
  }
  return list;
}

} // namespace

bool CheckResult::isAnythingUnreadable() const {
  return std::ranges::any_of(kernels, [](const FoundKernel& kernel) { return !kernel.kernel; }) ||
         std::ranges::any_of(objects, [](const CheckedObject& object) { return object.error.has_value(); });
}

check::Verdict CheckResult::worst() const {
  auto worst = check::Verdict::loads;
  for (const CheckedObject& object : objects) {
    for (const check::Report& report : object.reports) {
      worst = std::max(worst, report.verdict);
    }
  }
  return worst;
}

std::string checkView(const CheckResult& result, bool verbose, std::size_t width) {
  const auto kernels = kernelLabels(result);
  const auto objects = objectLabels(result);
  std::vector<Column> columns{{.title = "OBJECT", .align = Align::Left, .elastic = true}};
  std::ranges::transform(kernels, std::back_inserter(columns),
                         [](const std::string& kernel) { return Column{kernel}; });
  Table table(std::move(columns));
  std::string below;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const CheckedObject& object = result.objects[i];
    if (object.error) {
      continue;
    }
    std::vector<std::string> cells{objects[i]};
    std::ranges::transform(object.reports, std::back_inserter(cells),
                           [](const check::Report& report) { return std::string(verdictName(report.verdict)); });
    table.add(std::move(cells));
    if (const std::string why = reasons(object, kernels, verbose); !why.empty()) {
      below += "\n" + objects[i] + "\n" + why;
    }
  }
  return table.render(width) + below;
}

std::string unreadableView(const CheckResult& result) {
  std::string text;
  for (const FoundKernel& kernel : result.kernels) {
    if (!kernel.kernel) {
      text += "btfctl: check: " + printable(kernel.kernel.error().message) + "\n";
    }
    for (const Error& error : kernel.leftOut) {
      text += "btfctl: check: a module is left out: " + printable(error.message) + "\n";
    }
  }
  for (const CheckedObject& object : result.objects) {
    if (object.error) {
      text += "btfctl: check: " + printable(object.error->message) + "\n";
    }
  }
  return text;
}

json checkDocument(const CheckResult& result) {
  json document;
  document["verdict"] = verdictName(result.worst());
  document["kernels"] = json::array();
  std::vector<const FoundKernel*> readable;
  for (const FoundKernel& kernel : result.kernels) {
    json described{{"path", kernel.path}, {"leftOut", errorsOf(kernel.leftOut)}};
    if (kernel.kernel) {
      described["name"] = (*kernel.kernel)->name();
      described["modules"] = (*kernel.kernel)->targets().size() - 1;
      readable.push_back(&kernel);
    } else {
      described["error"] = kernel.kernel.error().message;
    }
    document["kernels"].push_back(std::move(described));
  }
  document["objects"] = json::array();
  for (const CheckedObject& object : result.objects) {
    json described{{"path", object.path}, {"reports", json::array()}};
    if (object.error) {
      described["error"] = object.error->message;
    }
    for (std::size_t i = 0; i < object.reports.size(); ++i) {
      json report = check::toJson(object.reports[i]);
      report["kernel"] = readable[i]->path;
      described["reports"].push_back(std::move(report));
    }
    document["objects"].push_back(std::move(described));
  }
  return document;
}

} // namespace btfd::btfctl
