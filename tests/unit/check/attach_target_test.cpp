// What programs attach to, on kernels made by hand.
#include "check_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <linux/btf.h>

namespace btfd::check {
namespace {

using test_support::BtfMaker;
using testing::ElementsAre;
using testing::IsEmpty;

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

using LoadedTargetTest = CheckObjectTest;

TEST_F(LoadedTargetTest, NamesNearATargetAreTold) {
  kernel_.function("do_nanosleeps", kernel_.prototype(0, {}));
  EXPECT_THAT(check(objectWith("fentry/do_nanosleep"), kernel_).findings,
              ElementsAre(finding(Severity::error, Topic::attachTarget,
                                  "the kernel has no function 'do_nanosleep'; it has 'do_nanosleeps'")));
}

TEST_F(LoadedTargetTest, NamesNearManyTargetsAreTooMuch) {
  kernel_.function("a_function", kernel_.prototype(0, {}));
  const std::vector<bpf_insn> code{move(0), leave()};
  test_support::ElfMaker elf;
  for (std::size_t i = 0; i <= kMostNearNames; ++i) {
    const std::string number = std::to_string(i);
    const std::size_t section = elf.code(("fentry/a_function" + number).c_str(), code);
    elf.function(("program" + number).c_str(), section, 0, code.size());
  }
  elf.section("license", std::as_bytes(std::span("GPL", 4)));
  const auto report = check(read(elf.bytes()), kernel_);
  ASSERT_EQ(report.findings.size(), kMostNearNames + 1);
  EXPECT_THAT(report.findings.front().message, testing::EndsWith("it has 'a_function'"));
  EXPECT_THAT(report.findings.back().message, testing::EndsWith("no function 'a_function100'"));
}

TEST_F(LoadedTargetTest, ATargetOfOneModuleIsLookedForThereOnly) {
  BtfMaker module = BtfMaker::splitFrom(kernel_);
  module.function("a_function", module.prototype(0, {}));
  const auto kernel = kernelOf(kernel_);
  ASSERT_TRUE(kernel->addModule("one", {.btf = module.bytes(), .distilledBase = {}}));
  EXPECT_EQ(checkObject(objectWith("fentry/one:a_function"), *kernel).verdict, Verdict::loads);
  EXPECT_THAT(checkObject(objectWith("fentry/two:a_function"), *kernel).findings,
              ElementsAre(finding(Severity::error, Topic::attachTarget, "no function 'a_function' in 'two'")));
}

TEST_F(LoadedTargetTest, ATargetThatIsChosenLaterIsUnknown) {
  EXPECT_THAT(check(objectWith("fentry"), kernel_).findings,
              ElementsAre(finding(Severity::unknown, Topic::attachTarget, "does not say what it attaches to")));
}

// ---- What the kernel looks for only when they are attached ----------------------------------------------------------

class TracepointTest : public CheckObjectTest {
 protected:
  TracepointTest() { addTracepoint("an_event"); }

  void addTracepoint(const char* name) {
    kernel_.definedAs(("btf_trace_" + std::string(name)).c_str(), kernel_.pointer());
  }

  void addFunction(const char* name) { kernel_.function(name, kernel_.prototype(0, {})); }

  Report check(const char* section) { return check::check(objectWith(section), kernel_); }
};

TEST_F(TracepointTest, AreKnownByTheirTypedefs) {
  for (const char* section : {"tracepoint/category/an_event", "tp/category/an_event", "raw_tp/an_event"}) {
    EXPECT_EQ(check(section).verdict, Verdict::loads) << section;
  }
  for (const char* section : {"tracepoint/category/an_evens", "tp/category/an_evens", "raw_tp/an_evens"}) {
    EXPECT_THAT(check(section).findings,
                ElementsAre(finding(Severity::warning, Topic::attachTarget,
                                    "it loads, but cannot be attached: the kernel has no tracepoint 'an_evens'; it has "
                                    "'an_event'")))
        << section;
  }
}

TEST_F(TracepointTest, OfOldKernelsAreKnownByTheirRecordsIfAtAll) {
  kernel_ = kernelBtf();
  kernel_.structure("trace_event_raw_an_event", {{"a", kernel_.integer()}});
  EXPECT_EQ(check("tp/category/an_event").verdict, Verdict::loads);
  for (const char* section : {"tp/category/of_a_template", "raw_tp/of_a_template"}) {
    EXPECT_THAT(check(section).findings,
                ElementsAre(finding(Severity::unknown, Topic::attachTarget, "does not name tracepoints")))
        << section;
  }
}

TEST_F(TracepointTest, ThatMayHaveNoEventAreUnknown) {
  addTracepoint("pelt_cfs_tp");
  EXPECT_EQ(check("raw_tp/pelt_cfs_tp").verdict, Verdict::loads);
  EXPECT_THAT(check("tp/sched/pelt_cfs_tp").findings,
              ElementsAre(finding(Severity::unknown, Topic::attachTarget, "'pelt_cfs_tp', are mostly for raw_tp")));
  kernel_.structure("trace_event_raw_pelt_cfs_tp", {{"a", kernel_.integer()}});
  EXPECT_EQ(check("tp/sched/pelt_cfs_tp").verdict, Verdict::loads);
}

TEST_F(TracepointTest, ThatUsersMakeAreUnknown) {
  EXPECT_THAT(check("tp/kprobes/mine").findings,
              ElementsAre(finding(Severity::unknown, Topic::attachTarget, "nothing of events in 'kprobes'")));
}

TEST_F(TracepointTest, NeedACategory) {
  EXPECT_THAT(check("tp/an_event").findings,
              ElementsAre(finding(Severity::warning, Topic::attachTarget, "names no tracepoint as CATEGORY/NAME")));
}

TEST_F(TracepointTest, OfSystemCallsAreGuessedFromTheirFunctions) {
  addFunction("__x64_sys_read");
  addFunction("__do_sys_getpid");
  for (const char* section : {"tp/syscalls/sys_enter_read", "tp/syscalls/sys_exit_getpid", "ksyscall/read"}) {
    const Report report = check(section);
    EXPECT_EQ(report.verdict, Verdict::loads) << section;
    EXPECT_THAT(report.findings,
                ElementsAre(finding(Severity::note, Topic::attachTarget, "does not tell for certain")));
  }
  for (const char* section : {"tp/syscalls/sys_enter_reat", "kretsyscall/reat"}) {
    EXPECT_THAT(check(section).findings, ElementsAre(finding(Severity::unknown, Topic::attachTarget,
                                                             "no function of a system call 'reat'; it has 'read'")))
        << section;
  }
  EXPECT_EQ(check("tp/syscalls/an_evens").verdict, Verdict::warning);
}

TEST_F(TracepointTest, ThatAreChosenLaterAreOnlyNoted) {
  for (const char* section : {"raw_tp", "tracepoint", "kprobe"}) {
    EXPECT_THAT(check(section).findings,
                ElementsAre(finding(Severity::note, Topic::attachTarget, "who attaches it has to")))
        << section;
  }
}

using ProbeTest = TracepointTest;

TEST_F(ProbeTest, OfAFunctionThatBtfHasLoads) {
  addFunction("do_nanosleep");
  for (const char* section : {"kprobe/do_nanosleep", "kretprobe/do_nanosleep", "kprobe/do_nanosleep+0x10",
                              "kprobe.multi/do_nanosleep", "kprobe.multi/do_*sl??p", "kretprobe.multi/*"}) {
    EXPECT_THAT(check(section).findings, IsEmpty()) << section;
  }
}

TEST_F(ProbeTest, OfAnotherFunctionIsUnknown) {
  addFunction("do_nanosleep");
  for (const char* section : {"kprobe/do_nanosleeq", "kretprobe/do_nanosleeq+8", "kprobe.multi/do_nanosleeq"}) {
    EXPECT_THAT(
        check(section).findings,
        ElementsAre(finding(Severity::unknown, Topic::attachTarget,
                            "no function 'do_nanosleeq', and not all that can be probed; it has 'do_nanosleep'")))
        << section;
  }
  for (const char* section : {"kprobe.multi/nano*", "kprobe.multi/*nano", "kprobe.multi/do_nanosleep?"}) {
    EXPECT_THAT(check(section).findings,
                ElementsAre(finding(Severity::unknown, Topic::attachTarget, "no function that fits")))
        << section;
  }
}

TEST_F(ProbeTest, OfAProgramIsOnlyNoted) {
  for (const char* section : {"uprobe", "uretprobe//bin/sh:main", "uprobe.multi//bin/sh:*", "usdt//bin/sh:a:b"}) {
    EXPECT_THAT(check(section).findings, ElementsAre(finding(Severity::note, Topic::attachTarget,
                                                             "a program or library, which is not looked at")))
        << section;
  }
}

} // namespace
} // namespace btfd::check
