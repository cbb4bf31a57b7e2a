#include "btfctl/check_view.h"
#include "check/check_result.h"
#include "varlink/embedded.h"
#include "varlink/interface.h"
#include "varlink/validate.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace btfd::btfctl {
namespace {

using check::Finding;
using check::Severity;
using check::Topic;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Finding finding(Severity severity, Topic topic) {
  Finding made;
  made.severity = severity;
  made.topic = topic;
  made.program = "program";
  made.map = "map";
  made.name = "name";
  made.message = "message";
  return made;
}

object::RelocationReport relocation(core::Outcome outcome) {
  object::RelocationReport made;
  made.kind = "byte_off";
  made.outcome = outcome;
  made.targetType = "struct task_struct";
  made.targetTypeId = 1;
  made.targetBtf = "vmlinux";
  made.reason = "because";
  return made;
}

check::CheckResult resultWith(check::Report report) {
  check::CheckResult result;
  result.kernels = {{.name = "good", .path = "/good", .modules = 1, .leftOut = {{"left out", 0}}, .error = {}},
                    {.name = "bad", .path = "/bad", .modules = 0, .leftOut = {}, .error = Error{"bad", 0}}};
  result.objects.emplace_back().name = "object";
  result.objects.back().reports.push_back(std::move(report));
  result.objects.emplace_back().name = "bad";
  result.objects.back().error = Error{"bad", 0};
  return result;
}

/// Whatever it may have in it, the daemon answers with it: what the interface says of it has to be true.
TEST(CheckResult, FitsTheInterface) {
  check::Report report;
  for (const Severity severity : {Severity::note, Severity::warning, Severity::unknown, Severity::error}) {
    for (auto topic = static_cast<unsigned>(Topic::object); topic <= static_cast<unsigned>(Topic::relocation);
         ++topic) {
      report.findings.push_back(finding(severity, static_cast<Topic>(topic)));
    }
  }
  for (const auto outcome : {core::Outcome::resolved, core::Outcome::poisoned, core::Outcome::failed}) {
    report.relocations.push_back(relocation(outcome));
  }
  report.findings.front().relocation = relocation(core::Outcome::poisoned);
  const auto interface = varlink::parseInterface(varlink::interfaceText("io.btfd"));
  ASSERT_TRUE(interface);
  for (const auto verdict :
       {check::Verdict::loads, check::Verdict::warning, check::Verdict::unknown, check::Verdict::fails}) {
    report.verdict = verdict;
    auto document = toJson(resultWith(report));
    const auto valid = varlink::validate(*interface, interface->findMethod("Check")->output, document);
    EXPECT_TRUE(valid) << valid.error().path << " " << valid.error().reason;
    // An object and a kernel could not be read.
    EXPECT_EQ(document.at("verdict"), check::verdictName(std::max(verdict, check::Verdict::unknown)));
  }
}

TEST(CheckView, TellsNotesOnlyOnDemand) {
  check::Report report;
  report.findings.push_back(finding(Severity::note, Topic::object));
  const auto result = resultWith(report);
  EXPECT_THAT(checkView(result, false, 80), Not(HasSubstr("message")));
  EXPECT_THAT(checkView(result, true, 80), HasSubstr("  note: program: message\n"));
}

TEST(CheckView, WhatManyProgramsHaveInCommonIsSaidOnce) {
  check::Report report;
  for (const char* program : {"a", "b", "c", "d", "e"}) {
    report.findings.push_back(finding(Severity::error, Topic::helper));
    report.findings.back().program = program;
  }
  EXPECT_THAT(checkView(resultWith(report), false, 80), HasSubstr("  fails: a, b, c and 2 more: message\n"));
  report.findings.pop_back();
  EXPECT_THAT(checkView(resultWith(report), false, 80), HasSubstr("  fails: a, b, c, d: message\n"));
}

TEST(CheckView, NamesOfOneKindAreReplacedByPaths) {
  EXPECT_THAT(distinctNames({"a.o", "b.o", "a.o"}, {"x/a.o", "x/b.o", "y/a.o"}), ElementsAre("x/a.o", "b.o", "y/a.o"));
}

TEST(CheckView, AnObjectThatCannotBeReadHasARowAndAKernelHasNoColumn) {
  auto result = resultWith({});
  EXPECT_TRUE(result.isAnythingUnreadable());
  result.objects.back().error = Error{"no \x1b ELF file", 0};
  EXPECT_EQ(checkView(result, false, 80),
            "OBJECT  good\nobject  loads\nbad     unreadable\n\nbad\n  unreadable: no \\x1b ELF file\n");
  result.objects.back().error = Error{"bad", 0};
  EXPECT_EQ(unreadableView(result),
            "btfctl: check: a module is left out: left out\nbtfctl: check: bad\nbtfctl: check: bad\n");
}

} // namespace
} // namespace btfd::btfctl
