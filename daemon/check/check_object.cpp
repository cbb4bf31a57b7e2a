#include "check_object.h"

#include "rules.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace btfd::check {

namespace {

/// One object on one kernel.
class Check {
 public:
  Check(const ObjectToCheck& object, const TargetKernel& kernel, const CheckOptions& options)
      : object_(object), kernel_(kernel), options_(options) {
    for (const struct bpf_program* program : object_.programs()) {
      loaded_.emplace(bpf_program__name(program));
    }
  }

  Report run() {
    const auto bytes = object_.image();
    std::vector<std::byte> image(bytes.begin(), bytes.end());
    const auto relocations = object_.records().resolve(image, kernel_.targets());
    const Reachability reachability(object_.code(), image, entries(),
                                    [this](std::string_view symbol) { return supplied(symbol); });
    checkByteOrder();
    checkSections(object_, report_.findings);
    if (kernel_.isWhole()) {
      checkPrograms(object_, kernel_, near_, report_.findings);
      checkMaps(object_, kernel_, report_.findings);
      checkStructOps(object_, kernel_, near_, report_.findings);
      checkCalls(object_, kernel_, image, reachability, near_, report_.findings);
    } else {
      sayIsPart();
    }
    checkExterns(object_, kernel_, near_, report_.findings);
    for (const core::Relocation& relocation : relocations) {
      judge(relocation, reachability);
    }
    report_.conclude(options_.most);
    return std::move(report_);
  }

 private:
  [[nodiscard]] std::vector<Place> entries() const {
    std::vector<Place> places;
    for (const CodeFunction& function : object_.code().functions()) {
      if (loaded_.contains(function.name) && object_.code().find(function.begin.section)->name != ".text") {
        places.push_back(function.begin);
      }
    }
    return places;
  }

  /// The walk through the code asks it of the same symbols over and over.
  [[nodiscard]] Supplied supplied(std::string_view symbol) {
    const Extern* found = object_.findExtern(symbol);
    if (found == nullptr || found->isConfiguration) {
      return Supplied::unknown;
    }
    const auto known = supplied_.find(symbol);
    return known != supplied_.end() ? known->second
                                    : supplied_.emplace(symbol, isSupplied(object_, kernel_, *found)).first->second;
  }

  void checkByteOrder() {
    const bool isBigEndian = (std::endian::native == std::endian::big) != object_.code().isForeign();
    if (isBigEndian != kernel_.isBigEndian()) {
      const auto name = [](bool isBig) { return std::string(isBig ? "big" : "little") + "-endian"; };
      report_.findings.push_back({.severity = Severity::error,
                                  .topic = Topic::object,
                                  .program = {},
                                  .map = {},
                                  .name = {},
                                  .message = "the object is " + name(isBigEndian) + " and the kernel is " +
                                             name(kernel_.isBigEndian()) + ": compile it with -target bpfe" +
                                             (kernel_.isBigEndian() ? "b" : "l"),
                                  .relocation = {}});
    }
  }

  void sayIsPart() {
    report_.findings.push_back({.severity = Severity::unknown,
                                .topic = Topic::object,
                                .program = {},
                                .map = {},
                                .name = {},
                                .message =
                                    "not a whole kernel's BTF, but what CO-RE relocations of some objects need of "
                                    "it: only relocations can be checked, and only those of these objects",
                                .relocation = {}});
  }

  void judge(const core::Relocation& relocation, const Reachability& reachability) {
    report_.relocationCounts.add(relocation.outcome);
    const bool isRecorded = options_.allRelocations && report_.relocations.size() < options_.most;
    if (relocation.outcome == core::Outcome::resolved) {
      if (isRecorded) {
        report_.relocations.push_back(describe(relocation));
      }
      return;
    }
    Finding finding;
    finding.topic = Topic::relocation;
    finding.program = object_.records().functionOf(relocation);
    const bool isTold = report_.findings.size() < options_.most;
    if (isTold || isRecorded) { // describing them all may take longer than all the rest
      finding.relocation = describe(relocation);
      finding.name = finding.relocation->access;
    }
    weigh(relocation, reachability, finding);
    if (isRecorded) {
      report_.relocations.push_back(*finding.relocation);
    }
    if (isTold) {
      report_.findings.push_back(std::move(finding));
    } else {
      report_.verdict = std::max(report_.verdict, static_cast<Verdict>(finding.severity));
      ++report_.findingsLeftOut;
    }
  }

  void weigh(const core::Relocation& relocation, const Reachability& reachability, Finding& finding) const {
    const std::string what =
        finding.relocation ? finding.relocation->access + ": " + finding.relocation->reason : std::string();
    if (relocation.outcome == core::Outcome::failed) {
      const bool counts = object_.records().isShared(relocation) || loaded_.contains(finding.program);
      finding.severity = counts ? Severity::error : Severity::note;
      finding.message = what + (counts ? "" : " (in a program that is not loaded unless it is asked for)");
      return;
    }
    const auto [section, instruction] = object_.records().placeOf(relocation);
    switch (reachability.at({.section = section, .instruction = instruction})) {
    case Reach::always:
      finding.severity = Severity::error;
      finding.message = what + "; guard the code with bpf_core_field_exists() or the like";
      break;
    case Reach::depends:
      finding.severity = Severity::unknown;
      finding.message = what + "; whether this code is reached depends on what only that kernel knows";
      break;
    case Reach::never:
      finding.severity = Severity::note;
      finding.message = what + (object_.records().isShared(relocation) || loaded_.contains(finding.program)
                                    ? "; the code is guarded, and not reached on this kernel"
                                    : " (in a program that is not loaded unless it is asked for)");
      break;
    }
  }

  object::RelocationReport describe(const core::Relocation& relocation) {
    return object::describe(object_.records(), kernel_.targets(), relocation, near_);
  }

  const ObjectToCheck& object_;
  const TargetKernel& kernel_;
  const CheckOptions& options_;
  Report report_;
  /// Names of the programs to be loaded.
  std::set<std::string_view> loaded_;
  std::map<std::string_view, Supplied> supplied_;
  core::NearNames near_{kernel_.targets(), kMostNearNames};
};

} // namespace

Report checkObject(const ObjectToCheck& object, const TargetKernel& kernel, const CheckOptions& options) {
  return Check(object, kernel, options).run();
}

} // namespace btfd::check
