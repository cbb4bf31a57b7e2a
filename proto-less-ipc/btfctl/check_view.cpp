#include "btfctl/check_view.h"

#include "base/text.h"
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

/// Something that some programs, or maps, of an object have in common on some kernels.
struct Reason {
  Severity severity;
  std::string message;
  std::vector<std::string> subjects;
  std::vector<std::string> kernels;
};

void addOnce(std::vector<std::string>& list, const std::string& text) {
  if (!text.empty() && std::ranges::find(list, text) == list.end()) {
    list.push_back(text);
  }
}

/// The reasons of one object, the heaviest first.
std::vector<Reason> reasonsOf(const CheckedObject& object, const std::vector<std::string>& kernels, bool verbose) {
  std::vector<Reason> found;
  std::map<std::pair<Severity, std::string_view>, std::size_t> known;
  for (std::size_t kernel = 0; kernel < object.reports.size(); ++kernel) {
    for (const Finding& finding : object.reports[kernel].findings) {
      if (finding.severity == Severity::note && !verbose) {
        continue;
      }
      const auto [at, isNew] = known.try_emplace({finding.severity, finding.message}, found.size());
      if (isNew) {
        found.push_back({.severity = finding.severity, .message = finding.message, .subjects = {}, .kernels = {}});
      }
      Reason& reason = found[at->second];
      addOnce(reason.subjects, finding.program.empty() ? finding.map : finding.program);
      addOnce(reason.kernels, kernels[kernel]);
    }
  }
  std::ranges::stable_sort(found, std::ranges::greater{}, &Reason::severity);
  return found;
}

/// "a, b, c and 97 more: ", or nothing.
std::string subjectsText(const std::vector<std::string>& subjects) {
  return subjects.empty() ? std::string() : listed(subjects) + ": ";
}

std::string reasons(const CheckedObject& object, const std::vector<std::string>& kernels, bool verbose) {
  std::string text;
  for (const Reason& reason : reasonsOf(object, kernels, verbose)) {
    text += "  " + std::string(heading(reason.severity));
    if (kernels.size() > 1) {
      text += reason.kernels.size() == kernels.size() ? " on all" : " on " + joined(reason.kernels);
    }
    text += ": " + printable(subjectsText(reason.subjects) + reason.message) + "\n";
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
    const std::string name = printable(object.name);
    std::vector<std::string> cells{name};
    if (object.error) {
      cells.resize(kernels.size() + 1, "unreadable");
      table.add(std::move(cells));
      below += "\n" + name + "\n  unreadable: " + printable(object.error->message) + "\n";
      continue;
    }
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
