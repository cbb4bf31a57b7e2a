#include "btfctl/failure_text.h"

#include <gmock/gmock.h>

namespace btfd::btfctl {
namespace {

using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

std::string textOf(std::string name, json parameters, bool verbose = false) {
  return failureText(refused(std::move(name), std::move(parameters)).error(), "load x.o", verbose);
}

TEST(FailureText, BeginsWithWhatWasTriedAndSaysWhatHappened) {
  EXPECT_EQ(textOf("io.btfd.InvalidObject", {{"message", "it has no ELF header"}}),
            "btfctl: load x.o: it has no ELF header\n");
}

TEST(FailureText, ShowsTheVerifierLogIndented) {
  const std::string text =
      textOf("io.btfd.LoadFailed", {{"message", "refused"}, {"program", "p"}, {"verifierLog", "a\n\tb\n"}});
  EXPECT_EQ(text, "btfctl: load x.o: refused\n  verifier log of program p:\n    a\n    \tb\n");
}

std::string numberedLines(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i) {
    text += "line " + std::to_string(i) + "\n";
  }
  return text;
}

TEST(FailureText, ShowsTheEndOfALongVerifierLogAndAllOfItOnDemand) {
  const json parameters{{"message", "refused"}, {"program", "p"}, {"verifierLog", numberedLines(900)}};
  const std::string text = textOf("io.btfd.LoadFailed", parameters);
  EXPECT_THAT(text, HasSubstr("\n  verifier log of program p, the last 20 of 900 lines (--verbose shows all):\n"
                              "    line 881\n"));
  EXPECT_THAT(text, EndsWith("    line 900\n"));
  const std::string all = textOf("io.btfd.LoadFailed", parameters, true);
  EXPECT_THAT(all, HasSubstr("\n  verifier log of program p:\n    line 1\n"));
  EXPECT_THAT(all, EndsWith("    line 900\n"));
}

TEST(FailureText, AVerifierLogThatIsShortIsShownWhole) {
  std::string log = numberedLines(20);
  for (const bool lineBreakAtTheEnd : {true, false}) {
    if (!lineBreakAtTheEnd) {
      log.pop_back();
    }
    EXPECT_THAT(textOf("io.btfd.LoadFailed", {{"message", "refused"}, {"verifierLog", log}}),
                HasSubstr("\n  verifier log:\n    line 1\n"));
  }
  EXPECT_THAT(textOf("io.btfd.LoadFailed", {{"message", "refused"}, {"verifierLog", log + "\nline 21"}}),
              HasSubstr("\n  verifier log, the last 20 of 21 lines (--verbose shows all):\n    line 2\n"));
}

TEST(FailureText, ShowsLibbpfLogOnlyOnDemand) {
  const json parameters{{"message", "refused"}, {"libbpfLog", {"libbpf: one", "libbpf: two"}}};
  EXPECT_THAT(textOf("io.btfd.LoadFailed", parameters), Not(HasSubstr("libbpf: one")));
  EXPECT_THAT(textOf("io.btfd.LoadFailed", parameters), HasSubstr("--verbose"));
  EXPECT_THAT(textOf("io.btfd.LoadFailed", parameters, true), HasSubstr("    libbpf: one\n    libbpf: two\n"));
}

TEST(FailureText, ShowsNearMissesUnlessTheMessageDoes) {
  const json near{"on_exec", "on_exit"};
  EXPECT_THAT(textOf("io.btfd.NoSuchName", {{"message", "no program x"}, {"nearMisses", near}}),
              HasSubstr("no program x; did you mean on_exec or on_exit?\n"));
  EXPECT_EQ(textOf("io.btfd.NoSuchName", {{"message", "no program x; there is on_exec"}, {"nearMisses", near}}),
            "btfctl: load x.o: no program x; there is on_exec\n");
}

TEST(FailureText, VarlinkErrorsGetWords) {
  EXPECT_THAT(textOf("org.varlink.service.InvalidParameter", {{"parameter", "maps"}}), HasSubstr("value of 'maps'"));
  EXPECT_THAT(textOf("org.varlink.service.MethodNotFound", {{"method", "io.btfd.Load"}}),
              HasSubstr("no method io.btfd.Load"));
  EXPECT_THAT(textOf("org.varlink.service.PermissionDenied", json::object()), HasSubstr("policy"));
  EXPECT_THAT(textOf("org.varlink.service.InterfaceNotFound", {{"interface", "io.btfd"}}),
              HasSubstr("does not speak io.btfd"));
}

TEST(FailureText, AnInvalidParameterIsCalledAsItWasTypedAndComesWithItsReason) {
  EXPECT_EQ(textOf("org.varlink.service.InvalidParameter",
                   {{"parameter", "target.interface"}, {"reason", "there is no network interface 'veth9'"}}),
            "btfctl: load x.o: target key 'interface': there is no network interface 'veth9'\n");
  EXPECT_EQ(
      textOf("org.varlink.service.InvalidParameter",
             {{"parameter", "programs.p.attach[0].pid"},
              {"reason", "program 'p' of type perf_event has no use for it; it takes perfEvent, cookie"}}),
      "btfctl: load x.o: --attach p, target key 'pid': program 'p' of type perf_event has no use for it; it takes "
      "perf, cookie\n");
}

TEST(FailureText, WhatAttachAllCouldNotAttachIsToldWithTheOptionThatCan) {
  EXPECT_EQ(textOf("org.varlink.service.InvalidParameter",
                   {{"parameter", "target.interface"}, {"reason", "is needed"}, {"program", "p"}}),
            "btfctl: load x.o: --attach p, target key 'interface': is needed\n");
}

TEST(FailureText, UnknownErrorsAreShownAsTheyCame) {
  EXPECT_EQ(textOf("io.btfd.New", {{"x", 1}}), "btfctl: load x.o: error io.btfd.New {\"x\":1}\n");
}

TEST(FailureText, FieldsOfUnexpectedTypesAreNoReasonToFail) {
  EXPECT_EQ(textOf("io.btfd.LoadFailed", {{"message", 5}, {"verifierLog", {1}}, {"libbpfLog", "x"}, {"nearMisses", 3}}),
            "btfctl: load x.o: 5\n");
}

TEST(FailureDocument, HasTheErrorAsVarlinkHasIt) {
  EXPECT_EQ(failureDocument(refused("io.btfd.Busy", {{"waiting", 3}}).error()),
            "{\"error\":\"io.btfd.Busy\",\"parameters\":{\"waiting\":3}}\n");
}

} // namespace
} // namespace btfd::btfctl
