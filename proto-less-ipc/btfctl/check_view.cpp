#include "btfctl/check_view.h"

#include "btfctl/table.h"
#include "btfctl/text.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace btfd::btfctl {
namespace {

using check::CheckedKernel;
using check::CheckedObject;
using check::CheckResult;
using check::Finding;
using check::Severity;

/// The names of the kernels that could be read.
std::vector<std::string> kernelLabels(const CheckResult& result) {
  std::vector<std::string> labels;
  for (const CheckedKernel& kernel : result.kernels) {
    if (!kernel.error) {
      labels.push_back(printable(kernel.name));
    }
  }
  return labels;
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

} // namespace

std::vector<std::string> distinctNames(const std::vector<std::string>& shortNames,
                                       const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < shortNames.size(); ++i) {
    const bool isOnly = std::ranges::count(shortNames, shortNames[i]) == 1;
    names.push_back(isOnly ? shortNames[i] : paths[i]);
  }
  return names;
}

std::string checkView(const CheckResult& result, bool verbose, std::size_t width) {
  const auto kernels = kernelLabels(result);
  std::vector<Column> columns{{.title = "OBJECT", .align = Align::Left, .elastic = true}};
  std::ranges::transform(kernels, std::back_inserter(columns),
                         [](const std::string& kernel) { return Column{kernel}; });
  Table table(std::move(columns));
  std::string below;
  for (const CheckedObject& object : result.objects) {
    if (object.error) {
      continue;
    }
    const std::string name = printable(object.name);
    std::vector<std::string> cells{name};
    std::ranges::transform(object.reports, std::back_inserter(cells),
                           [](const check::Report& report) { return std::string(verdictName(report.verdict)); });
    table.add(std::move(cells));
    if (const std::string why = reasons(object, kernels, verbose); !why.empty()) {
      below += "\n" + name + "\n" + why;
    }
  }
  return table.render(width) + below;
}

std::string unreadableView(const CheckResult& result) {
  std::string text;
  for (const CheckedKernel& kernel : result.kernels) {
    if (kernel.error) {
      text += "btfctl: check: " + printable(kernel.error->message) + "\n";
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

} // namespace btfd::btfctl
