// Verdicts on objects, hand-made ones and the project's own, for kernels made by hand.
#include "check/report_json.h"
#include "check_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>

namespace btfd::check {
namespace {

using test_support::BtfMaker;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST_F(CheckObjectTest, WhatNeedsNothingLoads) {
  const Report report = check(objectWith("socket"), kernel_);
  EXPECT_EQ(report.verdict, Verdict::loads);
  EXPECT_THAT(report.findings, IsEmpty());
}

// ---- Types of programs, attachments and maps ------------------------------------------------------------------------

TEST_F(CheckObjectTest, AProgramTypeThatTheKernelLacksIsAnError) {
  EXPECT_THAT(
      check(objectWith("syscall"), kernelBtf({.programTypes = 31})).findings,
      ElementsAre(finding(Severity::error, Topic::programType, "no program type syscall (BPF_PROG_TYPE_SYSCALL)")));
  EXPECT_EQ(check(objectWith("syscall"), kernelBtf({.programTypes = 32})).verdict, Verdict::loads);
}

TEST_F(CheckObjectTest, AnAttachTypeThatIsCheckedAtLoadIsAnError) {
  // BPF_NETFILTER is 45.
  EXPECT_THAT(check(objectWith("netfilter"), kernelBtf({.attachTypes = 45})).findings,
              ElementsAre(finding(Severity::error, Topic::attachType, "no attach type netfilter (BPF_NETFILTER)")));
  EXPECT_EQ(check(objectWith("netfilter"), kernelBtf({.attachTypes = 46})).verdict, Verdict::loads);
}

TEST_F(CheckObjectTest, OtherAttachTypesKeepItFromBeingAttached) {
  // BPF_TCX_INGRESS is 46: older kernels load the program for tc.
  EXPECT_THAT(check(objectWith("tcx/ingress"), kernelBtf({.attachTypes = 46})).findings,
              ElementsAre(finding(Severity::warning, Topic::attachType, "it loads, but cannot be attached")));
  EXPECT_EQ(check(objectWith("tcx/ingress"), kernelBtf({.attachTypes = 47})).verdict, Verdict::loads);
}

TEST_F(CheckObjectTest, ASectionThatLibbpfDoesNotKnowIsAnError) {
  EXPECT_THAT(check(objectWith("no_such_thing"), kernel_).findings,
              ElementsAre(finding(Severity::error, Topic::programType, "section 'no_such_thing'")));
}

TEST_F(CheckObjectTest, ProgramsThatAreNotLoadedAreNotChecked) {
  EXPECT_EQ(check(objectWith("?fentry/a_function", {call(9999), leave()}), kernel_).verdict, Verdict::loads);
}

TEST_F(CheckObjectTest, AMapTypeThatTheKernelLacksIsAnError) {
  const auto object = compiled("exec_events"); // BPF_MAP_TYPE_RINGBUF is 27
  const auto maps = [&](unsigned types) {
    auto findings = check(object, kernelBtf({.mapTypes = types})).findings;
    std::erase_if(findings, [](const Finding& each) { return each.topic != Topic::mapType; });
    return findings;
  };
  EXPECT_THAT(maps(27),
              ElementsAre(finding(Severity::error, Topic::mapType, "no map type ringbuf (BPF_MAP_TYPE_RINGBUF)")));
  EXPECT_EQ(maps(27).front().map, "events");
  EXPECT_THAT(maps(28), IsEmpty());
}

// ---- Helpers --------------------------------------------------------------------------------------------------------

TEST_F(CheckObjectTest, AHelperThatTheKernelLacksIsAnError) {
  const auto object = objectWith("socket", {call(BPF_FUNC_loop), move(0), leave()});
  const Report report = check(object, kernelBtf({.helpers = BPF_FUNC_loop}));
  EXPECT_EQ(report.verdict, Verdict::fails);
  ASSERT_THAT(report.findings,
              ElementsAre(finding(Severity::error, Topic::helper, "the kernel has no helper bpf_loop")));
  EXPECT_EQ(report.findings.front().program, "program");
  EXPECT_EQ(report.findings.front().name, "bpf_loop");
  EXPECT_EQ(check(object, kernelBtf({.helpers = BPF_FUNC_loop + 1})).verdict, Verdict::loads);
}

TEST_F(CheckObjectTest, AHelperIsToldOnceForEachFunction) {
  EXPECT_EQ(check(objectWith("socket", {call(9999), call(9999), leave()}), kernel_).findings.size(), 1U);
}

TEST_F(CheckObjectTest, AHelperThatIsNotReachedIsNone) {
  EXPECT_EQ(check(objectWith("socket", {move(0), leave(), call(9999), leave()}), kernel_).verdict, Verdict::loads);
}

TEST_F(CheckObjectTest, HelpersThatLibbpfReplacesAreAsGoodAsTheirReplacement) {
  const auto object = objectWith("raw_tp", {call(BPF_FUNC_probe_read_kernel), move(0), leave()});
  EXPECT_EQ(check(object, kernelBtf({.helpers = BPF_FUNC_probe_read_kernel})).verdict, Verdict::loads);
  EXPECT_EQ(check(object, kernelBtf({.helpers = BPF_FUNC_probe_read})).verdict, Verdict::fails);
}

TEST_F(CheckObjectTest, WithoutAnEnumNothingIsKnown) {
  BtfMaker old;
  old.function("a_function", old.prototype(0, {}));
  const Report report = check(objectWith("socket", {call(BPF_FUNC_loop), move(0), leave()}), old);
  EXPECT_EQ(report.verdict, Verdict::unknown);
  EXPECT_THAT(report.findings, Contains(finding(Severity::unknown, Topic::object, "no enum bpf_func_id")));
  EXPECT_THAT(report.findings, Contains(finding(Severity::unknown, Topic::object, "no enum bpf_prog_type")));
  EXPECT_THAT(report.findings, Contains(finding(Severity::unknown, Topic::object, "no enum bpf_attach_type")));
}

// ---- BTF of a part of a kernel
// ----------------------------------------------------------------------------------------

TEST_F(CheckObjectTest, OfAPartOfAKernelOnlyRelocationsAreKnown) {
  BtfMaker part;
  part.structure("task_struct", {{"pid", part.integer()}});
  // Two values that some object asked for.
  part.enumeration("bpf_func_id", {{"BPF_FUNC_loop", BPF_FUNC_loop}, {"BPF_FUNC_get_current_task_btf", 158}});
  const auto isPart = finding(Severity::unknown, Topic::object, "not a whole kernel's BTF");
  for (const char* name :
       {"missing_targets", "missing_helper", "missing_kernel_function", "struct_ops", "exec_events"}) {
    SCOPED_TRACE(name);
    auto findings = check(compiled(name), part).findings;
    std::erase_if(findings, [](const Finding& each) { return each.topic == Topic::relocation; });
    EXPECT_THAT(findings, ElementsAre(isPart));
  }
  const Report report = check(compiled("missing_field"), part);
  EXPECT_THAT(report.findings,
              ElementsAre(finding(Severity::error, Topic::relocation, "field_that_no_kernel_has"), isPart));
  EXPECT_EQ(report.relocationCounts.resolved, 1U);
  EXPECT_EQ(check(objectWith("no_such_thing"), part).verdict, Verdict::fails);
}

TEST_F(CheckObjectTest, BtfThatHasFunctionsOrAllThatBpfNumbersIsOfAWholeKernel) {
  BtfMaker part;
  part.integer();
  EXPECT_FALSE(kernelOf(part)->isWhole());
  part.function("a_function", part.prototype(0, {}));
  EXPECT_TRUE(kernelOf(part)->isWhole());
  EXPECT_TRUE(kernelOf(kernelBtf())->isWhole());
}

// ---- CO-RE ----------------------------------------------------------------------------------------------------------

class RelocationsTest : public CheckObjectTest {
 protected:
  RelocationsTest() {
    kernel_.structure("task_struct", {{"pid", kernel_.integer()}});
    kernel_.definedAs("btf_trace_sched_process_exec", kernel_.pointer());
  }
};

TEST_F(RelocationsTest, AFieldThatTheKernelLacksIsAnErrorWhereItIsReached) {
  const Report report = check(compiled("missing_field"), kernel_);
  EXPECT_EQ(report.verdict, Verdict::fails);
  EXPECT_THAT(report.findings,
              Contains(finding(Severity::error, Topic::relocation, "has no 'field_that_no_kernel_has'")));
  EXPECT_EQ(report.relocationCounts.poisoned, 1U);
  EXPECT_EQ(report.relocationCounts.resolved, 1U);
  EXPECT_THAT(report.relocations, IsEmpty());
}

TEST_F(RelocationsTest, RecordsOfAllAreThereOnDemand) {
  const Report report = check(compiled("missing_field"), kernel_, {.allRelocations = true});
  ASSERT_EQ(report.relocations.size(), 2U);
  const auto document = toJson(report);
  EXPECT_EQ(document["verdict"], "fails");
  EXPECT_EQ(document["relocations"][0]["outcome"], "resolved");
  EXPECT_EQ(document["relocations"][0]["targetType"], "struct task_struct");
  EXPECT_EQ(document["findings"][0]["topic"], "relocation");
  EXPECT_EQ(document["findings"][0]["relocation"]["kind"], "byte_off");
}

TEST_F(RelocationsTest, AReportMayHaveALimit) {
  const auto object = compiled("bench_many30");
  const Report whole = check(object, kernelBtf());
  ASSERT_GT(whole.findings.size(), 5U);
  const Report report = check(object, kernelBtf(), {.allRelocations = true, .most = 3});
  EXPECT_EQ(report.findings.size(), 3U);
  EXPECT_EQ(report.findingsLeftOut, whole.findings.size() - 3);
  EXPECT_EQ(report.relocations.size(), 3U);
  EXPECT_EQ(report.verdict, whole.verdict);
  EXPECT_EQ(report.relocationCounts.poisoned, whole.relocationCounts.poisoned);
}

TEST_F(RelocationsTest, GuardedCodeLoads) {
  const Report report = check(compiled("guarded"), kernel_);
  EXPECT_EQ(report.verdict, Verdict::loads);
  EXPECT_EQ(report.relocationCounts.poisoned, 3U);
  EXPECT_THAT(report.findings, testing::Each(finding(Severity::note, Topic::relocation, "the code is guarded")));
}

TEST_F(RelocationsTest, GuardsThatHoldMakeNoDifference) {
  BtfMaker rich = kernelBtf();
  rich.structure("task_struct", {{"field_that_no_kernel_has", rich.integer()}});
  rich.definedAs("btf_trace_sched_process_exec", rich.pointer());
  const Report report = check(compiled("guarded"), rich);
  EXPECT_EQ(report.relocationCounts.poisoned, 0U);
  EXPECT_EQ(report.verdict, Verdict::loads);
}

TEST_F(RelocationsTest, WhatDependsOnTheKernelsVersionIsUnknown) {
  const Report report = check(compiled("guarded_by_version"), kernel_);
  EXPECT_EQ(report.verdict, Verdict::unknown);
  EXPECT_THAT(report.findings,
              ElementsAre(finding(Severity::unknown, Topic::relocation, "depends on what only that kernel knows")));
}

TEST_F(RelocationsTest, AnAmbiguousOneIsAnError) {
  kernel_.structure("task_struct", {{"other", kernel_.integer()}, {"pid", kernel_.integer()}});
  const Report report = check(compiled("missing_field"), kernel_);
  EXPECT_THAT(report.findings,
              Contains(finding(Severity::error, Topic::relocation, "nothing tells which of them is meant")));
  EXPECT_GE(report.relocationCounts.failed, 1U);
}

TEST_F(RelocationsTest, ATypeThatTheKernelLacksIsNamedWithWhatComesNear) {
  BtfMaker poor = kernelBtf();
  poor.structure("task_strict", {{"pid", poor.integer()}});
  EXPECT_THAT(check(compiled("missing_field"), poor).findings,
              Contains(finding(Severity::error, Topic::relocation, "no struct 'task_struct'; it has 'task_strict'")));
}

TEST_F(CheckObjectTest, TheKernelsByteOrderMustBeTheObjects) {
  btf__set_endianness(kernel_.get(), BTF_BIG_ENDIAN);
  const Report report = check(compiled("missing_helper"), kernel_);
  EXPECT_THAT(report.findings, Contains(finding(Severity::error, Topic::object, "-target bpfeb")));
  EXPECT_THAT(report.findings, Contains(finding(Severity::error, Topic::helper, "number 99999")));
}

TEST_F(CheckObjectTest, AnObjectWithoutBtfHasAByteOrder) {
  btf__set_endianness(kernel_.get(), BTF_BIG_ENDIAN);
  EXPECT_THAT(check(objectWith("socket"), kernel_).findings,
              Contains(finding(Severity::error, Topic::object, "-target bpfeb")));
}

/// All that the object's report says, but for its byte order.
std::vector<std::string> told(const std::string& name, const BtfMaker& kernel) {
  const Report report = check(compiled(name.c_str()), kernel, {.allRelocations = true, .most = 10000});
  std::vector<std::string> lines = {std::to_string(static_cast<int>(report.verdict))};
  for (const Finding& each : report.findings) {
    lines.push_back(each.program + "/" + each.map + "/" + each.name + ": " + each.message);
  }
  for (const auto& each : report.relocations) {
    lines.push_back(each.function + " " + std::to_string(each.instruction) + " " + each.access + " " +
                    std::to_string(static_cast<int>(each.outcome)) + " " + each.targetType + " " + each.reason);
  }
  return lines;
}

TEST_F(CheckObjectTest, OnAMachineOfTheOtherByteOrderTheSameIsSaid) {
  kernel_.structure("task_struct", {{"flags", kernel_.integer()}, {"pid", kernel_.integer()}});
  BtfMaker other = kernelBtf();
  other.structure("task_struct", {{"flags", other.integer()}, {"pid", other.integer()}});
  ASSERT_EQ(btf__set_endianness(other.get(), BTF_BIG_ENDIAN), 0);
  for (const char* name : {"exec_events", "guarded", "guarded_by_version", "kernel_functions", "lsm", "maps",
                           "missing_field_in_function", "missing_helper", "missing_kernel_function", "missing_targets",
                           "optional", "struct_ops", "tc", "global_data", "bench_hundred"}) {
    SCOPED_TRACE(name);
    const auto expected = told(name, kernel_);
    EXPECT_EQ(told(std::string("big_endian/") + name, other), expected);
  }
  EXPECT_THAT(
      check(compiled("big_endian/guarded"), kernel_).findings,
      Contains(finding(Severity::error, Topic::object, "the object is big-endian and the kernel is little-endian")));
}

// ---- Functions and variables of the kernel --------------------------------------------------------------------------

class ExternsTest : public CheckObjectTest {
 protected:
  ExternsTest() {
    kernel_.definedAs("btf_trace_task_newtask", kernel_.pointer());
    task_ = kernel_.pointer(kernel_.structure("task_struct", {{"pid", kernel_.integer()}}));
  }

  test_support::TypeId task_ = 0;
};

TEST_F(ExternsTest, WeakOnesMayBeMissing) {
  kernel_.function("bpf_task_acquire", kernel_.prototype(task_, {{"p", task_}}));
  kernel_.function("bpf_task_release", kernel_.prototype(0, {{"p", task_}}));
  EXPECT_THAT(check(compiled("kernel_functions"), kernel_).findings, IsEmpty());
}

TEST_F(ExternsTest, OthersMustBeThere) {
  const Report report = check(compiled("missing_kernel_function"), kernel_);
  EXPECT_THAT(report.findings,
              Contains(finding(Severity::error, Topic::kernelFunction, "no function 'function_that_no_kernel_has'")));
  EXPECT_THAT(report.findings,
              Contains(finding(Severity::error, Topic::kernelSymbol, "no variable 'variable_that_no_kernel_has'")));
  const auto number = kernel_.integer();
  kernel_.function("function_that_no_kernel_has", kernel_.prototype(number, {{"number", number}}));
  kernel_.variable("variable_that_no_kernel_has", number);
  EXPECT_THAT(check(compiled("missing_kernel_function"), kernel_).findings, IsEmpty());
}

TEST_F(ExternsTest, TheirTypesMustFit) {
  const auto number = kernel_.integer();
  kernel_.function("bpf_task_acquire", kernel_.prototype(task_, {{"p", task_}, {"flags", number}}));
  kernel_.function("bpf_task_release", kernel_.prototype(0, {{"p", task_}}));
  EXPECT_THAT(check(compiled("kernel_functions"), kernel_).findings,
              ElementsAre(finding(Severity::error, Topic::kernelFunction, "'bpf_task_acquire' has another type")));
}

// ---- Struct_ops -----------------------------------------------------------------------------------------------------

class StructOpsTest : public CheckObjectTest {
 protected:
  /// A kernel whose tcp_congestion_ops has these members.
  void addOps(const std::vector<test_support::Member>& members) {
    kernel_.structure("tcp_congestion_ops", members);
    kernel_.structure("bpf_struct_ops_tcp_congestion_ops", {{"data", kernel_.integer()}});
  }

  std::vector<Finding> findings() {
    auto found = check(compiled("struct_ops"), kernel_).findings;
    std::erase_if(found, [](const Finding& each) { return each.topic != Topic::structOps; });
    return found;
  }

  test_support::Member function(const char* name) { return {name, kernel_.pointer(kernel_.prototype(0, {}))}; }

  test_support::Member text() { return {"name", kernel_.array(kernel_.integer("char", 1), 16)}; }
};

TEST_F(StructOpsTest, NeedTheKernelsStruct) {
  kernel_.structure("bpf_struct_ops_tcp_congestion_opt", {{"data", kernel_.integer()}});
  EXPECT_THAT(findings(), ElementsAre(finding(Severity::error, Topic::structOps,
                                              "no struct_ops 'tcp_congestion_ops'; it has 'tcp_congestion_opt'")));
}

TEST_F(StructOpsTest, NeedTheMembersThatAreSet) {
  addOps({function("ssthresh"), function("cong_avoid"), function("undo_cwnd"), text()});
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(StructOpsTest, ProgramsOfMissingMembersAreLeftOut) {
  addOps({function("ssthresh"), function("undo_cwnd"), text()});
  EXPECT_THAT(findings(), ElementsAre(finding(Severity::warning, Topic::structOps, "has no 'cong_avoid'")));
}

TEST_F(StructOpsTest, ValuesOfMissingMembersAreErrors) {
  addOps({function("ssthresh"), function("cong_avoid"), function("undo_cwnd")});
  EXPECT_THAT(findings(),
              ElementsAre(finding(Severity::error, Topic::structOps, "has no 'name', which the object sets")));
}

TEST_F(StructOpsTest, MembersMustBeOfTheSameKindAndSize) {
  addOps({function("ssthresh"),
          {"cong_avoid", kernel_.integer()},
          function("undo_cwnd"),
          {"name", kernel_.array(kernel_.integer("char", 1), 8)}});
  EXPECT_THAT(findings(), ElementsAre(finding(Severity::error, Topic::structOps, "'cong_avoid' of another kind"),
                                      finding(Severity::error, Topic::structOps, "'name' of another size")));
}

// ---- Objects that are none ------------------------------------------------------------------------------------------

TEST_F(CheckObjectTest, BrokenObjectsAreErrors) {
  const auto errorOf = [](std::string_view content) {
    return ObjectToCheck::read(test_support::memfdOf(content)).error().message;
  };
  EXPECT_THAT(errorOf("no object"), HasSubstr("not an ELF file"));
  for (const auto& entry : std::filesystem::directory_iterator(std::string(BTFD_BPF_OBJECTS) + "/bad")) {
    if (entry.path().extension() == ".o") {
      const UniqueFd file(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
      const auto object = ObjectToCheck::read(file);
      if (object) { // some are only found out by a kernel: no crash, and a verdict
        EXPECT_THAT(std::string(verdictName(check(*object, kernel_).verdict)), Not(IsEmpty())) << entry.path();
      }
    }
  }
}

} // namespace
} // namespace btfd::check
