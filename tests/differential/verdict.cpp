#include "verdict.h"

#include <cstring>
#include <set>

namespace btfd::differential {

namespace {

std::string errnoName(int value) {
  const char* name = ::strerrorname_np(value);
  return name == nullptr ? std::to_string(value) : name;
}

void compareTags(const std::string& program, const Verdict& expected, const Verdict& actual,
                 std::vector<Mismatch>& out) {
  std::set<std::string> names;
  for (const auto* tags : {&expected.tags, &actual.tags}) {
    for (const auto& [name, tag] : *tags) {
      names.insert(name);
    }
  }
  for (const std::string& name : names) {
    const auto want = expected.tags.find(name);
    const auto got = actual.tags.find(name);
    if (want == expected.tags.end() || got == actual.tags.end()) {
      out.push_back({program, name + " is loaded by one side only"});
    } else if (want->second != got->second) {
      out.push_back({program, name + ": tag " + want->second + " and " + got->second});
    }
  }
}

void compareVerdicts(const std::string& program, const Verdict& expected, const Verdict& actual,
                     std::vector<Mismatch>& out) {
  const bool broken = expected.outcome == Outcome::broken || actual.outcome == Outcome::broken;
  if (broken || expected.outcome != actual.outcome || expected.errnoValue != actual.errnoValue) {
    std::string text = describe(expected) + " and " + describe(actual);
    for (const Verdict* verdict : {&expected, &actual}) {
      if (!verdict->text.empty()) {
        text += "\n      " + verdict->text;
      }
    }
    out.push_back({program, std::move(text)});
    return;
  }
  compareTags(program, expected, actual, out);
}

} // namespace

std::string describe(const Verdict& verdict) {
  switch (verdict.outcome) {
  case Outcome::loaded:
    return "loaded";
  case Outcome::refused:
    return "refused (" + errnoName(verdict.errnoValue) + ")";
  case Outcome::invalid:
    return "invalid";
  case Outcome::broken:
    break;
  }
  return "broken";
}

std::vector<Mismatch> compare(const ObjectVerdicts& expected, const ObjectVerdicts& actual) {
  std::vector<Mismatch> out;
  compareVerdicts("", expected.whole, actual.whole, out);
  std::set<std::string> names;
  for (const auto* verdicts : {&expected, &actual}) {
    for (const auto& [name, verdict] : verdicts->alone) {
      names.insert(name);
    }
  }
  for (const std::string& name : names) {
    const auto want = expected.alone.find(name);
    const auto got = actual.alone.find(name);
    if (want == expected.alone.end() || got == actual.alone.end()) {
      out.push_back({name, "judged by one side only"});
    } else {
      compareVerdicts(name, want->second, got->second, out);
    }
  }
  return out;
}

} // namespace btfd::differential
