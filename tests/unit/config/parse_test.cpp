#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <sstream>
#include <string>
#include <vector>

namespace btfd::config {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

/// The lines of the error that `text` gives; none if it is accepted.
std::vector<std::string> errorsOf(std::string_view text) {
  std::vector<std::string> lines;
  if (const auto config = parse(text, "b.json"); !config) {
    std::istringstream stream(config.error().message);
    for (std::string line; std::getline(stream, line);) {
      lines.push_back(line);
    }
  }
  return lines;
}

TEST(Parse, EmptyObjectMeansAllDefaults) {
  const auto config = parse("{}", "b.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(*config, Config{});
}

TEST(Parse, EachKeyReachesItsMember) {
  const auto config = parse(R"({
    "socket": {"path": "/tmp/s", "group": "wheel", "mode": "0600"},
    "stateDirectory": "/srv/state",
    "bpffs": "/mnt/bpf",
    "kernelBtf": {"load": "on-demand", "path": "/boot/vmlinux", "modules": false},
    "workers": {"count": 7},
    "cache": {"maxBytes": 17},
    "limits": {"deadlineMs": 11, "maximumDeadlineMs": 12, "objectBytes": 5000, "queuedRequests": 14, "connections": 16,
      "connectionsPerUser": 15, "verifierLogBytes": 70000, "messageBytes": 3000000},
    "log": {"level": "warning", "target": "journal"}
  })",
                            "b.json");
  ASSERT_TRUE(config) << config.error().message;
  using std::chrono::milliseconds;
  const Config expected{
      .socket = {.path = "/tmp/s", .group = "wheel", .mode = 0600},
      .stateDirectory = "/srv/state",
      .bpffs = "/mnt/bpf",
      .kernelBtf = {.load = KernelBtfLoad::OnDemand, .path = "/boot/vmlinux", .modules = false},
      .workers = {.count = 7},
      .cache = {.maxBytes = 17},
      .limits = {.deadline = milliseconds(11),
                 .maximumDeadline = milliseconds(12),
                 .objectBytes = 5000,
                 .queuedRequests = 14,
                 .connections = 16,
                 .connectionsPerUser = 15,
                 .verifierLogBytes = 70000,
                 .messageBytes = 3000000},
      .log = {.level = "warning", .target = LogTarget::Journal},
  };
  EXPECT_EQ(*config, expected);
}

TEST(Parse, CommentsAreAllowedWhereSpaceIs) {
  EXPECT_THAT(errorsOf("// one\n{ /* two */ \"log\" /* three\n*/ : {} } // four"), IsEmpty());
}

TEST(Parse, ErrorNamesFileLineColumnAndKey) {
  EXPECT_THAT(errorsOf("{\n  // \"limits\"\n  \"limits\": {\n    \"deadlineMs\": 0 } }"),
              ElementsAre("b.json:4:5: limits.deadlineMs: must be a whole number from 1 to 86400000, not 0 "
                          "(milliseconds)"));
}

TEST(Parse, ColumnsAreCountedInCharacters) {
  EXPECT_THAT(errorsOf("{ /* äöü */ \"bpffs\": 1 }"), ElementsAre(StartsWith("b.json:1:13: bpffs: ")));
}

TEST(Parse, KeyWithEscapesHasThePositionOfItsFirstQuote) {
  EXPECT_THAT(errorsOf(R"({ "a\"b\\": 1 })"), ElementsAre(StartsWith(R"(b.json:1:3: a\"b\\: is unknown)")));
}

TEST(Parse, AllErrorsOfAFileAreReportedInItsOrder) {
  EXPECT_THAT(errorsOf("{\"log\": {\"level\": \"loud\"},\n\"bpffs\": \"bpf\",\n\"bpffs\": \"/x\",\n"
                       "\"workers\": 3,\n\"socket\": {\"mod\": \"0660\"},\n\"log\": }"),
              ElementsAre(StartsWith("b.json:1:10: log.level: must be one of \"trace\", "),
                          "b.json:2:1: bpffs: must be an absolute path in quotes, not \"bpf\"",
                          "b.json:3:1: bpffs: is given twice, first in line 2",
                          "b.json:4:1: workers: must be an object: { ... }",
                          "b.json:5:12: socket.mod: is unknown; did you mean \"mode\"?",
                          StartsWith("b.json:6:8: syntax error while parsing value - unexpected '}'")));
}

TEST(Parse, SyntaxErrorsHaveAPosition) {
  // nlohmann_json from 3.11.3 on says the latter of an empty file.
  EXPECT_THAT(errorsOf(""), ElementsAre(AnyOf(StartsWith("b.json:1:1: syntax error"),
                                              StartsWith("b.json:1:1: attempting to parse an empty input"))));
  EXPECT_THAT(errorsOf("{\n\"log\": {\n"), ElementsAre(StartsWith("b.json:3:1: syntax error")));
  EXPECT_THAT(errorsOf("{} x"), ElementsAre(StartsWith("b.json:1:4: syntax error")));
  EXPECT_THAT(errorsOf("{\"log\": {},}"), ElementsAre(StartsWith("b.json:1:12: syntax error")));
  EXPECT_THAT(errorsOf("{ /* "), ElementsAre(HasSubstr("comment")));
  EXPECT_THAT(errorsOf("{\"bpffs\": \"\xff\xfe\"}"), ElementsAre(StartsWith("b.json:1:12: syntax error")));
}

TEST(Parse, NumberThatIsTooLargeForAnyTypeIsAnError) {
  EXPECT_THAT(errorsOf("{\"workers\": {\"count\": 1e999}}"), ElementsAre(HasSubstr("number overflow")));
  EXPECT_THAT(errorsOf("{\"workers\": {\"count\": 99999999999999999999999}}"), ElementsAre(HasSubstr("workers.count")));
}

TEST(Parse, TextThatIsNoObjectIsAnError) {
  for (const char* text : {"[]", "[{\"log\": 1}]", "3", "null", "\"{}\""}) {
    EXPECT_THAT(errorsOf(text), ElementsAre("b.json:1:1: the configuration must be an object: { ... }")) << text;
  }
}

TEST(Parse, WrongTypesAreErrors) {
  for (const char* value : {"null", "true", "-1", "1.5", "6e1", "\"5\"", "[5]", "{\"a\": 5}"}) {
    EXPECT_THAT(errorsOf("{\"workers\": {\"count\": " + std::string(value) + "}}"),
                ElementsAre(StartsWith("b.json:1:14: workers.count: must be a whole number from 0 to 1024, not ")))
        << value;
  }
  EXPECT_THAT(errorsOf(R"({"kernelBtf": {"modules": 1}})"), ElementsAre(EndsWith("must be true or false, not 1")));
  EXPECT_THAT(errorsOf(R"({"socket": {"mode": 660}})"), ElementsAre(HasSubstr("octal")));
  EXPECT_THAT(errorsOf(R"({"limits": [{"deadlineMs": 5}]})"),
              ElementsAre(EndsWith("limits: must be an object: { ... }")));
}

TEST(Parse, UnknownKeyIsRefusedWithTheNearestOne) {
  const auto suggestion = [](std::string_view text) {
    const auto lines = errorsOf(text);
    return lines.size() == 1 ? lines.front().substr(lines.front().find("is unknown")) : "not one error";
  };
  EXPECT_EQ(suggestion(R"({"limits": {"deadline": 5}})"), "is unknown; did you mean \"deadlineMs\"?");
  EXPECT_EQ(suggestion(R"({"limits": {"object_bytes": 5}})"), "is unknown; did you mean \"objectBytes\"?");
  EXPECT_EQ(suggestion(R"({"limit": {"objectBytes": 5, "x": 2}})"), "is unknown; did you mean \"limits\"?");
  EXPECT_EQ(suggestion(R"({"deadlineMs": 5})"), "is unknown; did you mean \"deadlineMs\" in \"limits\"?");
  EXPECT_EQ(suggestion(R"({"limits.deadlineMs": 5})"), "is unknown; did you mean \"deadlineMs\" in \"limits\"?");
  EXPECT_EQ(suggestion(R"({"log": {"bpffs": 5}})"), "is unknown; did you mean \"bpffs\" at the top?");
  EXPECT_EQ(suggestion(R"({"log": {"rotation": 5}})"), "is unknown; what can stand there: level, target");
}

TEST(Parse, SectionThatIsGivenTwiceIsAnError) {
  EXPECT_THAT(errorsOf("{\"log\": {\"level\": \"info\"},\n\"log\": {\"target\": \"stderr\"}}"),
              ElementsAre("b.json:2:1: log: is given twice, first in line 1"));
}

TEST(Parse, MessagesStayOneLineOfPrintableText) {
  const auto lines = errorsOf("{\"a\\nb\\u0001\xc3\xa4\": 1, \"bpffs\": \"x\\n\\u0000\"}");
  EXPECT_THAT(lines, ElementsAre(StartsWith(R"(b.json:1:2: a\nb\u0001\u00e4: )"), EndsWith(R"(not "x\n\u0000")")));
}

TEST(Parse, PathsMustBeAbsoluteAndFit) {
  EXPECT_THAT(errorsOf(R"({"socket": {"path": "run/s"}})"), ElementsAre(HasSubstr("must be an absolute path")));
  EXPECT_THAT(errorsOf(R"({"socket": {"path": "/run/\u0000s"}})"), ElementsAre(HasSubstr("must be an absolute path")));
  EXPECT_THAT(errorsOf(R"({"socket": {"path": "/)" + std::string(106, 'x') + "\"}}"), IsEmpty());
  EXPECT_THAT(errorsOf(R"({"socket": {"path": "/)" + std::string(107, 'x') + "\"}}"),
              ElementsAre(HasSubstr("is too long: 108 bytes, at most 107 are possible")));
  EXPECT_THAT(errorsOf(R"({"kernelBtf": {"path": "vmlinux"}})"), ElementsAre(HasSubstr("\"\" for the kernel's own")));
}

TEST(Parse, ModeIsThreeOctalDigitsWithOrWithoutAZero) {
  for (const char* mode : {"660", "0660", "000", "0777"}) {
    EXPECT_THAT(errorsOf("{\"socket\": {\"mode\": \"" + std::string(mode) + "\"}}"), IsEmpty()) << mode;
  }
  for (const char* mode : {"", "66", "1660", "00660", "0668", "o660", "0x1b0", " 660"}) {
    EXPECT_THAT(errorsOf("{\"socket\": {\"mode\": \"" + std::string(mode) + "\"}}"), Not(IsEmpty())) << mode;
  }
}

TEST(Parse, LimitsThatContradictEachOtherAreErrors) {
  EXPECT_THAT(errorsOf("{\"limits\": {\n\"deadlineMs\": 600001}}"),
              ElementsAre("b.json:2:1: limits.deadlineMs: 600001 is more than maximumDeadlineMs (600000) allows"));
  EXPECT_THAT(errorsOf("{\"limits\": {\n\"maximumDeadlineMs\": 5}}"),
              ElementsAre("b.json:2:1: limits.deadlineMs: 60000 is more than maximumDeadlineMs (5) allows"));
  EXPECT_THAT(errorsOf("{\"limits\": {\"connections\": 127}}"), ElementsAre(HasSubstr("connectionsPerUser: 128")));
  EXPECT_THAT(errorsOf("{\"limits\": {\"messageBytes\": 2097152, \"verifierLogBytes\": 1048577}}"),
              ElementsAre(HasSubstr("half of it")));
}

TEST(Parse, ContradictionsAreReportedBesideOtherErrors) {
  EXPECT_THAT(errorsOf("{\"limits\": {\n\"deadlineMs\": 600001,\n\"deadline\": 1,\n\"connections\": 0}}"),
              ElementsAre(StartsWith("b.json:2:1: limits.deadlineMs: 600001 is more than"),
                          StartsWith("b.json:3:1: limits.deadline: is unknown"),
                          StartsWith("b.json:4:1: limits.connections: must be")));
}

TEST(Parse, UnreadRestOfAFileMaySettleAContradiction) {
  EXPECT_THAT(errorsOf("{\"limits\": {\n\"deadlineMs\": 600001 ! \"maximumDeadlineMs\": 700000}}"),
              ElementsAre(HasSubstr("syntax error")));
}

TEST(Parse, DeepNestingIsAnErrorLikeAnyOther) {
  constexpr std::size_t kDepth = 100'000;
  EXPECT_THAT(errorsOf("{\"bpffs\": " + std::string(kDepth, '[') + std::string(kDepth, ']') + "}"),
              ElementsAre(EndsWith("must be an absolute path in quotes, not a list")));
}

} // namespace
} // namespace btfd::config
