// Verdicts on objects, hand-made ones and the project's own, for kernels made by hand.
#include "check/check_object.h"
#include "check/kernels.h"
#include "check/report_json.h"
#include "test_support/btf_maker.h"
#include "test_support/elf_maker.h"
#include "test_support/files.h"

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
using test_support::ElfMaker;
using test_support::Enumerator;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// What a kernel knows of bpf(2): how many of each.
struct Numbers {
  unsigned helpers = 212;
  unsigned mapTypes = 34;
  unsigned programTypes = 33;
  unsigned attachTypes = 60;
};

void addEnum(BtfMaker& btf, const char* name, unsigned count) {
  std::vector<std::string> names;
  for (unsigned i = 0; i < count; ++i) {
    names.push_back(std::string(name) + "_" + std::to_string(i));
  }
  std::vector<Enumerator> values;
  for (unsigned i = 0; i < count; ++i) {
    values.push_back({names[i].c_str(), i});
  }
  values.push_back({"__MAX", count});
  btf.enumeration(name, values);
}

/// A kernel that has what the project's test programs need, unless it is told otherwise.
BtfMaker kernelBtf(const Numbers& numbers = {}) {
  BtfMaker btf;
  addEnum(btf, "bpf_func_id", numbers.helpers);
  addEnum(btf, "bpf_map_type", numbers.mapTypes);
  addEnum(btf, "bpf_prog_type", numbers.programTypes);
  addEnum(btf, "bpf_attach_type", numbers.attachTypes);
  return btf;
}

std::unique_ptr<TargetKernel> kernelOf(const BtfMaker& btf) {
  auto kernel = TargetKernel::make("test", {.btf = btf.bytes(), .distilledBase = {}});
  EXPECT_TRUE(kernel) << kernel.error().message;
  return std::move(*kernel);
}

Report check(const ObjectToCheck& object, const BtfMaker& kernel, const CheckOptions& options = {}) {
  return checkObject(object, *kernelOf(kernel), options);
}

bpf_insn call(std::int32_t helper) {
  return {.code = BPF_JMP | BPF_CALL, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = helper};
}

bpf_insn move(std::int32_t value) {
  return {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = value};
}

bpf_insn leave() {
  return {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0};
}

ObjectToCheck read(const std::vector<std::byte>& content) {
  auto object = ObjectToCheck::read(test_support::memfdOf(content));
  EXPECT_TRUE(object) << object.error().message;
  return std::move(*object);
}

/// An object with one program, called "program", in `section`.
ObjectToCheck objectWith(const char* section, std::vector<bpf_insn> code = {move(0), leave()}) {
  ElfMaker elf;
  const std::size_t number = elf.code(section, code);
  elf.function("program", number, 0, code.size());
  elf.section("license", std::as_bytes(std::span("GPL", 4)));
  return read(elf.bytes());
}

/// One of the project's own test programs.
ObjectToCheck compiled(const char* name) {
  return read(test_support::readFile(std::string(BTFD_BPF_OBJECTS) + "/" + name + ".o"));
}

auto finding(Severity severity, Topic topic, const char* message) {
  return AllOf(Field(&Finding::severity, severity), Field(&Finding::topic, topic),
               Field(&Finding::message, HasSubstr(message)));
}

class CheckObjectTest : public testing::Test {
 protected:
  CheckObjectTest() { libbpf_set_print(nullptr); }

  BtfMaker kernel_ = kernelBtf();
};

TEST_F(CheckObjectTest, WhatNeedsNothingLoads) {
  const Report report = check(objectWith("socket"), kernel_);
  EXPECT_EQ(report.verdict, Verdict::loads);
  EXPECT_THAT(report.findings, IsEmpty());
}

// ---- Attach targets -------------------------------------------------------------------------------------------------

struct TargetCase {
  const char* section;
  const char* there;
  std::uint32_t kind;
  const char* missing;
};

class AttachTargetTest : public testing::TestWithParam<TargetCase> {
 protected:
  AttachTargetTest() { libbpf_set_print(nullptr); }

  static void add(BtfMaker& btf, const char* name) {
    const auto prototype = btf.prototype(btf.integer(), {});
    if (GetParam().kind == BTF_KIND_FUNC) {
      btf.function(name, prototype);
    } else {
      btf.definedAs(name, btf.pointer(prototype));
    }
  }
};

INSTANTIATE_TEST_SUITE_P(
    Kinds, AttachTargetTest,
    testing::Values(TargetCase{"fentry/a_function", "a_function", BTF_KIND_FUNC, "function 'a_function'"},
                    TargetCase{"fexit.s/a_function", "a_function", BTF_KIND_FUNC, "function 'a_function'"},
                    TargetCase{"fmod_ret/a_function", "a_function", BTF_KIND_FUNC, "function 'a_function'"},
                    TargetCase{"lsm/a_hook", "bpf_lsm_a_hook", BTF_KIND_FUNC, "LSM hook 'a_hook'"},
                    TargetCase{"lsm_cgroup/a_hook", "bpf_lsm_a_hook", BTF_KIND_FUNC, "LSM hook 'a_hook'"},
                    TargetCase{"tp_btf/an_event", "btf_trace_an_event", BTF_KIND_TYPEDEF, "tracepoint 'an_event'"},
                    TargetCase{"iter/a_list", "bpf_iter_a_list", BTF_KIND_FUNC, "iterator 'a_list'"}));

TEST_P(AttachTargetTest, HasToBeInTheKernelOrAModule) {
  const auto object = objectWith(GetParam().section);
  BtfMaker kernel = kernelBtf();
  EXPECT_THAT(check(object, kernel).findings,
              ElementsAre(finding(Severity::error, Topic::attachTarget, GetParam().missing)));
  BtfMaker module = BtfMaker::splitFrom(kernel);
  add(module, GetParam().there);
  const auto withModule = kernelOf(kernel);
  ASSERT_TRUE(withModule->addModule("a_module", {.btf = module.bytes(), .distilledBase = {}}));
  EXPECT_EQ(checkObject(object, *withModule).verdict, Verdict::loads);
  add(kernel, GetParam().there);
  EXPECT_EQ(check(object, kernel).verdict, Verdict::loads);
}

TEST_F(CheckObjectTest, NamesNearATargetAreTold) {
  kernel_.function("do_nanosleeps", kernel_.prototype(0, {}));
  EXPECT_THAT(check(objectWith("fentry/do_nanosleep"), kernel_).findings,
              ElementsAre(finding(Severity::error, Topic::attachTarget,
                                  "the kernel has no function 'do_nanosleep'; it has 'do_nanosleeps'")));
}

TEST_F(CheckObjectTest, ATargetOfOneModuleIsLookedForThereOnly) {
  BtfMaker module = BtfMaker::splitFrom(kernel_);
  module.function("a_function", module.prototype(0, {}));
  const auto kernel = kernelOf(kernel_);
  ASSERT_TRUE(kernel->addModule("one", {.btf = module.bytes(), .distilledBase = {}}));
  EXPECT_EQ(checkObject(objectWith("fentry/one:a_function"), *kernel).verdict, Verdict::loads);
  EXPECT_THAT(checkObject(objectWith("fentry/two:a_function"), *kernel).findings,
              ElementsAre(finding(Severity::error, Topic::attachTarget, "no function 'a_function' in 'two'")));
}

TEST_F(CheckObjectTest, AMissingRawTracepointOnlyKeepsItFromBeingAttached) {
  const auto object = objectWith("raw_tp/an_event");
  const Report report = check(object, kernel_);
  EXPECT_EQ(report.verdict, Verdict::warning);
  EXPECT_THAT(report.findings,
              ElementsAre(finding(Severity::warning, Topic::attachTarget, "it loads, but cannot be attached")));
  kernel_.definedAs("btf_trace_an_event", kernel_.pointer());
  EXPECT_EQ(check(object, kernel_).verdict, Verdict::loads);
}

TEST_F(CheckObjectTest, ATargetThatIsChosenLaterIsUnknown) {
  EXPECT_THAT(check(objectWith("fentry"), kernel_).findings,
              ElementsAre(finding(Severity::unknown, Topic::attachTarget, "does not say what it attaches to")));
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
  old.integer();
  const Report report = check(objectWith("socket", {call(BPF_FUNC_loop), move(0), leave()}), old);
  EXPECT_EQ(report.verdict, Verdict::unknown);
  EXPECT_THAT(report.findings, Contains(finding(Severity::unknown, Topic::object, "no enum bpf_func_id")));
  EXPECT_THAT(report.findings, Contains(finding(Severity::unknown, Topic::object, "no enum bpf_prog_type")));
  EXPECT_THAT(report.findings, Contains(finding(Severity::unknown, Topic::object, "no enum bpf_attach_type")));
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
