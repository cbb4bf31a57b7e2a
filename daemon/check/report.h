#pragma once

#include "object/relocation_report.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace btfd::check {

/// The most findings that are collected of an object on a kernel: an object may have as many as it has bytes.
inline constexpr std::size_t kMostCollected = 10'000;

/// For how many different names that a kernel lacks a report tells those that come near: each takes milliseconds to
/// find, and an object may have thousands.
inline constexpr std::size_t kMostNearNames = 100;

/// How much a finding weighs; the heaviest makes the verdict.
enum class Severity : std::uint8_t {
  /// Nothing to worry about, but good to know.
  note,
  /// The object loads, but something in it will not do what it is for.
  warning,
  /// BTF does not tell: whether it loads shows only there.
  unknown,
  /// The object is refused.
  error,
};

/// What a finding is about.
enum class Topic : std::uint8_t {
  object,
  programType,
  attachType,
  attachTarget,
  helper,
  mapType,
  structOps,
  kernelFunction,
  kernelSymbol,
  configuration,
  relocation,
};

/// One thing that stands in the way of an object on a kernel, or may.
struct Finding {
  Severity severity = Severity::note;
  Topic topic = Topic::object;
  /// The program or function, and the map, that it is about; empty if it is about none.
  std::string program;
  std::string map;
  /// What the kernel has or lacks, as it is called there: "bpf_loop", "do_nanosleep".
  std::string name;
  /// A sentence for people: what, why, and what the kernel has instead.
  std::string message;
  /// For topic relocation.
  std::optional<object::RelocationReport> relocation;
};

/// Collects `finding`. Past kMostCollected only one that is heavier than the last, in its place, so that the verdict is
/// the same.
void collect(std::vector<Finding>& findings, Finding finding);

/// Whether an object loads, by the heaviest finding.
enum class Verdict : std::uint8_t { loads, warning, unknown, fails };

/// What became of the object's CO-RE relocations.
struct RelocationCounts {
  std::size_t resolved = 0;
  std::size_t poisoned = 0;
  std::size_t failed = 0;

  void add(core::Outcome outcome);
};

/// The answer for one object and one kernel. Refers to neither.
struct Report {
  Verdict verdict = Verdict::loads;
  /// The heaviest first.
  std::vector<Finding> findings;
  /// How many more there were.
  std::size_t findingsLeftOut = 0;
  RelocationCounts relocationCounts;
  /// All of them, if they were asked for.
  std::vector<object::RelocationReport> relocations;

  /// Sorts findings, draws the verdict, and keeps `most` of the findings.
  void conclude(std::size_t most);
};

/// "note", "warning", "unknown", "error".
std::string_view severityName(Severity severity);

/// "relocation", "attachTarget" and so on.
std::string_view topicName(Topic topic);

/// "loads", "warning", "unknown", "fails".
std::string_view verdictName(Verdict verdict);

} // namespace btfd::check
