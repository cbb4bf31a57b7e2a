#include "loader/kernel_functions.h"
#include "test_support/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace btfd::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(MatchesPattern, StarsAndQuestionMarksStandForOthers) {
  for (const auto* pattern :
       {"tcp_v4_connect", "tcp_*", "*", "*connect", "tcp_v?_*", "t*c*t*", "**", "tcp_v4_connect*"}) {
    EXPECT_TRUE(matchesPattern("tcp_v4_connect", pattern)) << pattern;
  }
  for (const auto* pattern : {"", "tcp_v4_connec", "tcp", "?cp", "*x*", "tcp_v4_connect?", "T*"}) {
    EXPECT_FALSE(matchesPattern("tcp_v4_connect", pattern)) << pattern;
  }
  EXPECT_TRUE(matchesPattern("", "*"));
  EXPECT_FALSE(matchesPattern("", "?"));
}

TEST(MatchesPattern, ManyStarsTakeNoLonger) {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) {
    pattern += "a*";
  }
  EXPECT_FALSE(matchesPattern(std::string(2000, 'a') + "b", pattern + "c"));
}

/// A kernel with some functions.
class KernelFunctions : public testing::Test {
 protected:
  KernelFunctions() {
    test_support::writeFile(files_.symbols, "ffffffff81000000 T do_exit\n"
                                            "ffffffff81000100 d a_variable\n"
                                            "ffffffffc0000000 t veth_open\t[veth]\n"
                                            "ffffffff81000200 W weak\n"
                                            "ffffffff81000300 t twice\n"
                                            "ffffffff81000400 t twice\n"
                                            "ffffffff81000500 t made_over.constprop.0\n"
                                            "ffffffff81000600 t made_over.isra.0\n"
                                            "ffffffff81000700 t made_over.cold\n"
                                            "ffffffff81000800 t seldom.cold\n"
                                            "ffffffff81000900 t not_traced\n"
                                            "ffffffff81000a00 T forbidden\n"
                                            "ffffffff81000b00 T __x64_sys_getppid\n");
  }

  void letFtraceTell(bool withAddresses) {
    std::filesystem::create_directories(files_.tracefs.tracefs);
    test_support::writeFile(files_.tracefs.tracefs + "/available_filter_functions",
                            "do_exit\nveth_open [veth]\ntwice\ntwice\nweak\n");
    if (withAddresses) {
      test_support::writeFile(files_.tracefs.tracefs + "/available_filter_functions_addrs",
                              "ffffffff81000000 do_exit\nffffffffc0000000 veth_open [veth]\nffffffff81000300 twice\n");
    }
  }

  std::vector<std::string> like(std::string_view pattern) const {
    std::vector<std::string> names;
    for (const KernelFunction& function : functionsLike(pattern, files_)) {
      names.push_back(function.qualifiedName() + "@" + std::to_string(function.address % 0x10000));
    }
    return names;
  }

  std::string why(const std::string& name, int code, ProbeForm form = ProbeForm::single) const {
    return whyNoKernelFunction(std::span(&name, 1), code, form, files_, true);
  }

  test_support::TemporaryDirectory directory_;
  const KernelFunctionFiles files_{.symbols = directory_ / "kallsyms",
                                   .tracefs = {.debugfs = directory_ / "debugfs", .tracefs = directory_ / "tracefs"},
                                   .blacklist = directory_ / "blacklist"};
};

TEST_F(KernelFunctions, AreSymbolsForCode) {
  for (const auto* name : {"do_exit", "veth_open", "veth:veth_open", "weak"}) {
    EXPECT_TRUE(kernelHasFunction(name, files_)) << name;
    EXPECT_EQ(why(name, ENOENT), "") << name;
  }
  for (const auto* name : {"do_exi", "a_variable", "[veth]", "T", "", "veth:do_exit", "other:veth_open"}) {
    EXPECT_FALSE(kernelHasFunction(name, files_)) << name;
  }
}

TEST_F(KernelFunctions, AreTakenToBeThereWhereNothingTells) {
  EXPECT_TRUE(kernelHasFunction("do_exi", {.symbols = directory_ / "none"}));
}

TEST_F(KernelFunctions, TheFirstThatIsMissingIsNamed) {
  const std::vector<std::string> names{"do_exit", "none", "veth:veth_open", "neither"};
  EXPECT_EQ(firstMissing(names, files_), "none");
  EXPECT_THAT(whyNoKernelFunction(names, ESRCH, ProbeForm::multi, files_), HasSubstr("no function 'none'"));
}

TEST_F(KernelFunctions, WithoutFtraceAPatternIsForAll) {
  EXPECT_THAT(like("*t_*"), ElementsAre("not_traced@2304"));
  EXPECT_THAT(like("twice"), ElementsAre("twice@768", "twice@1024"));
}

TEST_F(KernelFunctions, APatternIsForWhatCanBeTraced) {
  letFtraceTell(false);
  EXPECT_THAT(like("*o*e*"), ElementsAre("do_exit@0", "veth:veth_open@0"));
  EXPECT_THAT(like("not_traced"), IsEmpty());
}

TEST_F(KernelFunctions, FtraceTellsApartWhatHasTheSameName) {
  letFtraceTell(true);
  EXPECT_THAT(like("twice"), ElementsAre("twice@768"));
}

TEST_F(KernelFunctions, ANameOfSeveralIsExplained) {
  EXPECT_THAT(why("twice", EADDRNOTAVAIL), HasSubstr("2 functions of the name 'twice'"));
  EXPECT_EQ(why("do_exit", EADDRNOTAVAIL), "");
}

TEST_F(KernelFunctions, WhatTheCompilerMadeOfOneIsNamed) {
  EXPECT_THAT(why("made_over", ENOENT),
              HasSubstr("no function 'made_over' but what the compiler made of it: made_over.constprop.0, "
                        "made_over.isra.0;"));
  EXPECT_THAT(why("seldom", ENOENT), HasSubstr("hardly ever runs, seldom.cold; the rest has been inlined"));
}

TEST_F(KernelFunctions, SomeMayNotBeProbed) {
  test_support::writeFile(files_.blacklist, "0xffffffff81000a00-0xffffffff81000a20\tforbidden\n");
  EXPECT_THAT(why("forbidden", EINVAL), HasSubstr("'forbidden' is one that the kernel allows no kprobes in"));
  EXPECT_EQ(why("do_exit", EINVAL), "");
}

TEST_F(KernelFunctions, SomeCannotBeTraced) {
  letFtraceTell(true);
  EXPECT_THAT(why("not_traced", ESRCH, ProbeForm::multi), HasSubstr("'not_traced' cannot be traced by ftrace"));
  EXPECT_EQ(why("not_traced", EINVAL), "");
  EXPECT_EQ(why("do_exit", ESRCH, ProbeForm::multi), "");
}

TEST_F(KernelFunctions, OptionsOfTheKernelAreNamed) {
  const std::string name = "do_exit";
  EXPECT_THAT(whyNoKernelFunction(std::span(&name, 1), ENOENT, ProbeForm::single, files_, false),
              HasSubstr("CONFIG_KPROBE_EVENTS"));
  EXPECT_THAT(why(name, EOPNOTSUPP, ProbeForm::multi), HasSubstr("CONFIG_FPROBE"));
  EXPECT_EQ(why("do_exi", EPERM), "");
}

TEST_F(KernelFunctions, SystemCallsAreFoundByTheirOwnName) {
  EXPECT_EQ(whyNoSystemCall("getppid", files_), "");
  EXPECT_THAT(whyNoSystemCall("getppd", files_), HasSubstr("no system call 'getppd'; did you mean 'getppid'?"));
}

} // namespace
} // namespace btfd::loader
