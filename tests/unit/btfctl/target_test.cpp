#include "btfctl/target.h"
#include "varlink/embedded.h"
#include "varlink/interface.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

namespace btfd::btfctl {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

std::string whyNot(std::string_view text) {
  const auto target = parseTarget(text);
  return target ? "it was accepted as " + target->dump() : target.error().message;
}

TEST(ParseTarget, EmptyTextLeavesTheTargetToTheSectionName) {
  EXPECT_EQ(parseTarget("").value(), json::object());
}

TEST(ParseTarget, KeysBecomeFieldsOfTheirType) {
  EXPECT_EQ(parseTarget("interface:veth0,xdpMode:generic").value(),
            (json{{"interface", "veth0"}, {"xdpMode", "generic"}}));
  EXPECT_EQ(parseTarget("tracepoint:sched/sched_switch").value(), (json{{"tracepoint", "sched/sched_switch"}}));
  EXPECT_EQ(parseTarget("function:do_unlinkat,offset:0x10,cookie:42").value(),
            (json{{"function", "do_unlinkat"}, {"offset", 16}, {"cookie", 42}}));
  EXPECT_EQ(parseTarget("pid:1").value(), (json{{"pid", 1}}));
}

TEST(ParseTarget, SeveralAreSeparatedByPlus) {
  EXPECT_EQ(parseTarget("functions:do_exit+veth:veth_open,cookies:1+0x2").value(),
            (json{{"functions", json::array({"do_exit", "veth:veth_open"})}, {"cookies", json::array({1, 2})}}));
  EXPECT_EQ(parseTarget("functions:do_exit").value(), (json{{"functions", json::array({"do_exit"})}}));
  EXPECT_THAT(whyNot("cookies:1+x"), HasSubstr("must be a number"));
}

TEST(ParseTarget, ADirectionIsIngressOrEgress) {
  EXPECT_EQ(parseTarget("interface:veth0,direction:egress").value(),
            (json{{"interface", "veth0"}, {"direction", "egress"}}));
  EXPECT_THAT(whyNot("direction:engress"), HasSubstr("must be ingress, egress, primary or peer; did you mean egress"));
}

/// The fields of `type` in the interface's text.
std::vector<std::string> fieldsOf(std::string_view type) {
  const auto interface = varlink::parseInterface(varlink::interfaceText("io.btfd"));
  EXPECT_TRUE(interface);
  const auto found = std::ranges::find(interface->types, type, &varlink::TypeDefinition::name);
  std::vector<std::string> names;
  std::ranges::transform(found->type.fields, std::back_inserter(names), &varlink::Field::name);
  return names;
}

TEST(TargetHelp, HasAKeyForEachFieldOfTheInterface) {
  const std::string help = targetHelp();
  for (const std::string& field : fieldsOf("AttachTarget")) {
    if (field ==
        "targetFileDescriptor") { // what a command line can name has a key of its own: cgroup, networkNamespace
      continue;
    }
    EXPECT_THAT(help, HasSubstr("\n  " + (field == "perfEvent" ? "perf" : field) + ":")) << field;
  }
  // type, event, frequency and period are in the value of perf.
  EXPECT_THAT(fieldsOf("PerfEvent"),
              testing::UnorderedElementsAre("type", "event", "frequency", "period", "cpu", "pid"));
}

TEST(ParseTarget, ValuesMayHoldColonsAndEscapedCommas) {
  EXPECT_EQ(parseTarget(R"(function:a:b\,c\\d,map:m)").value(), (json{{"function", R"(a:b,c\d)"}, {"map", "m"}}));
}

TEST(ParseTarget, PathsAreMadeAbsoluteForTheDaemon) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(parseTarget("cgroup:a/b").value()["cgroup"], here + "/a/b");
  EXPECT_EQ(parseTarget("cgroup:/sys/fs/cgroup").value()["cgroup"], "/sys/fs/cgroup");
  EXPECT_EQ(parseTarget("binary:./server").value()["binary"], here + "/./server");
}

TEST(ParseTarget, TcFilters) {
  EXPECT_EQ(parseTarget("interface:eth0,tcForm:tc,priority:50,handle:0x17").value(),
            nlohmann::json::parse(R"({"interface": "eth0", "tcForm": "tc", "priority": 50, "handle": 23})"));
  EXPECT_FALSE(parseTarget("tcForm:clsact"));
  EXPECT_EQ(parseTarget("networkNamespacePid:12").value()["networkNamespacePid"], 12);
}

TEST(ParseTarget, NamesWithoutSlashKeepTheMeaningThatToolsGiveThem) {
  EXPECT_EQ(parseTarget("binary:libc.so.6").value()["binary"], "libc.so.6");
  EXPECT_EQ(parseTarget("networkNamespace:blue").value()["networkNamespace"], "/run/netns/blue");
}

TEST(ParseTarget, PerfEventsHaveAFrequencyOrAPeriod) {
  EXPECT_EQ(parseTarget("perf:software/cpu-clock@99hz").value(),
            (json{{"perfEvent", {{"type", "software"}, {"event", "cpu-clock"}, {"frequency", 99}}}}));
  EXPECT_EQ(parseTarget("perf:hardware/cpu-cycles/1000000").value(),
            (json{{"perfEvent", {{"type", "hardware"}, {"event", "cpu-cycles"}, {"period", 1000000}}}}));
}

TEST(ParseTarget, CpuAndPidLimitThePerfEventThatTheyStandWith) {
  EXPECT_EQ(
      parseTarget("pid:7,perf:software/cpu-clock@99hz,cpu:1,cookie:3").value(),
      (json{{"perfEvent", {{"type", "software"}, {"event", "cpu-clock"}, {"frequency", 99}, {"cpu", 1}, {"pid", 7}}},
            {"cookie", 3}}));
  EXPECT_THAT(whyNot("cpu:1"), HasSubstr("key 'cpu' needs key 'perf'"));
}

TEST(ParseTarget, AnUnknownKeyIsNamedWithThoseThatExist) {
  EXPECT_THAT(whyNot("interfaces:veth0"), AllOf(HasSubstr("target 'interfaces:veth0'"),
                                                HasSubstr("there is no key 'interfaces'; did you mean interface?"),
                                                HasSubstr("tracepoint, interface, direction, ")));
  EXPECT_THAT(whyNot("veth0"), HasSubstr("there is no key 'veth0'"));
  EXPECT_THAT(whyNot("map:a,,map:b"), HasSubstr("there is no key ''"));
}

TEST(ParseTarget, WrongValuesSayWhatTheKeyTakes) {
  EXPECT_THAT(whyNot("interface:"), HasSubstr("key 'interface' has no value: write interface:NAME"));
  EXPECT_THAT(whyNot("interface"), HasSubstr("key 'interface' has no value"));
  EXPECT_THAT(whyNot("xdpMode:genric"), HasSubstr("must be native, generic or offload; did you mean generic?"));
  EXPECT_THAT(whyNot("pid:me"), HasSubstr("pid 'me' must be a number"));
  EXPECT_THAT(whyNot("pid:-1"), HasSubstr("must be a number that is not negative"));
  EXPECT_THAT(whyNot("offset:0x"), HasSubstr("must be a number"));
  EXPECT_THAT(whyNot("tracepoint:sched/"), HasSubstr("category/name"));
  EXPECT_THAT(whyNot("pid:1,pid:2"), HasSubstr("key 'pid' is given twice"));
}

TEST(ParseTarget, NumbersAreThoseThatVarlinkCanCarry) {
  EXPECT_EQ(parseTarget("cookie:9223372036854775807").value()["cookie"], INT64_MAX);
  EXPECT_THAT(whyNot("cookie:9223372036854775808"), HasSubstr("is larger than 2^63-1"));
  EXPECT_THAT(whyNot("cookie:99999999999999999999999"), HasSubstr("is larger than 2^63-1"));
}

TEST(ParseTarget, MalformedPerfEventsShowTheForm) {
  for (const auto* text : {"perf:cpu-clock", "perf:software/", "perf:software/cpu-clock", "perf:software/@99hz",
                           "perf:software/cpu-clock@99", "perf:software/cpu-clock@0hz", "perf:hardware/cpu-cycles/",
                           "perf:tracepoint/x@1hz", "perf:hardware/cpu-cycles/-1"}) {
    EXPECT_THAT(whyNot(text), HasSubstr("must be written as software/cpu-clock@99hz")) << text;
  }
}

TEST(TargetHelp, NamesEachKey) {
  EXPECT_THAT(targetHelp(),
              AllOf(HasSubstr("  interface:NAME "), HasSubstr("  perf:EVENT "), HasSubstr("  cookie:N ")));
}

} // namespace
} // namespace btfd::btfctl
