#include "btfctl/load_request.h"

#include <gmock/gmock.h>

namespace btfd::btfctl {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(LoadParameters, WithoutOptionsThereIsOnlyTheNameOfTheFile) {
  EXPECT_EQ(loadParameters({.object = "some/where/x.o"}).value(), (json{{"name", "x"}}));
}

TEST(LoadParameters, ANameThatIsGivenIsTaken) {
  EXPECT_EQ(loadParameters({.object = "x.o", .name = "y.o"}).value(), (json{{"name", "y.o"}}));
}

TEST(LoadParameters, TheFileIsNamedWithoutItsExtensions) {
  const auto nameOf = [](const std::string& path) {
    return loadParameters({.object = path}).value().value("name", "");
  };
  EXPECT_EQ(nameOf("/a.b/exec.bpf.o"), "exec");
  EXPECT_EQ(nameOf("tcp.v4.o"), "tcp.v4");
  EXPECT_EQ(nameOf("plain"), "plain");
}

TEST(LoadParameters, NothingIsCalledAfterStandardInputOrAFileWhoseNameTheDaemonWouldRefuse) {
  EXPECT_EQ(loadParameters({.object = "-"}).value(), json::object());
  EXPECT_EQ(loadParameters({.object = std::string(65, 'x') + ".o"}).value(), json::object());
  EXPECT_EQ(loadParameters({.object = "a\nb.o"}).value(), json::object());
}

TEST(LoadParameters, AProgramMayBeAttachedSeveralTimes) {
  const LoadOptions options{.attach = {"p=interface:a", "p=interface:b", "q"}, .enable = {"p"}};
  EXPECT_EQ(loadParameters(options).value()["programs"],
            (json{{"p", {{"enabled", true}, {"attach", {{{"interface", "a"}}, {{"interface", "b"}}}}}},
                  {"q", {{"attach", {json::object()}}}}}));
}

TEST(LoadParameters, VariablesKeepTheirJsonType) {
  const LoadOptions options{.variables = {"n=1", "f=true", "s=\"a=b\"", "o={\"x\":[1,2]}"}};
  EXPECT_EQ(loadParameters(options).value()["variables"],
            (json{{"n", 1}, {"f", true}, {"s", "a=b"}, {"o", {{"x", {1, 2}}}}}));
}

TEST(LoadParameters, MapsAndProgramsHaveFields) {
  const LoadOptions options{
      .enable = {"p"},
      .maxEntries = {"m=8"},
      .maps = {"m=type:lru_hash,flags:0x10", "m=pinPath:shared", "n=reuseMap:7/.data.x,innerMap:8/y"},
      .programs = {"p=type:cgroup/connect6,verifierLogLevel:2"},
      .kconfig = {"CONFIG_HZ=250", "CONFIG_TEXT=\"a=b\""}};
  const json parameters = loadParameters(options).value();
  EXPECT_EQ(
      parameters["maps"],
      (json{{"m", {{"maxEntries", 8}, {"type", "lru_hash"}, {"flags", 16}, {"pinPath", "shared"}}},
            {"n",
             {{"reuseMap", {{"objectId", 7}, {"map", ".data.x"}}}, {"innerMap", {{"objectId", 8}, {"map", "y"}}}}}}));
  EXPECT_EQ(parameters["programs"],
            (json{{"p", {{"enabled", true}, {"type", "cgroup/connect6"}, {"verifierLogLevel", 2}}}}));
  EXPECT_EQ(parameters["kconfig"], (json{{"CONFIG_HZ", "250"}, {"CONFIG_TEXT", "\"a=b\""}}));
}

TEST(LoadParameters, ErrorsOfFieldsNameThem) {
  const auto whyNot = [](const LoadOptions& options) { return loadParameters(options).error().message; };
  EXPECT_THAT(whyNot({.maps = {"m=typ:hash"}}), HasSubstr("--map m: there is no field 'typ'; did you mean type?"));
  EXPECT_THAT(whyNot({.maps = {"m=type"}}), HasSubstr("write type:TYPE"));
  EXPECT_THAT(whyNot({.maps = {"m=flags:1k"}}), HasSubstr("flags: must be a number"));
  EXPECT_THAT(whyNot({.maps = {"m=flags:4294967296"}}), HasSubstr("from 0 to 4294967295"));
  EXPECT_THAT(whyNot({.maps = {"m=reuseMap:state"}}), HasSubstr("such as 7/state"));
  EXPECT_THAT(whyNot({.maxEntries = {"m=1"}, .maps = {"m=maxEntries:2"}}), HasSubstr("given twice"));
  EXPECT_THAT(whyNot({.programs = {"p=keySize:1"}}), HasSubstr("--program p: there is no field 'keySize'"));
  EXPECT_THAT(whyNot({.kconfig = {"CONFIG_HZ"}}), HasSubstr("--kconfig CONFIG_HZ: must be written as"));
}

TEST(LoadParameters, ErrorsNameTheOption) {
  const auto whyNot = [](const LoadOptions& options) { return loadParameters(options).error().message; };
  EXPECT_THAT(whyNot({.attach = {"=interface:a"}}), HasSubstr("--attach =interface:a: must be written as PROGRAM"));
  EXPECT_THAT(whyNot({.attach = {"p=x:y"}}), HasSubstr("--attach p: target 'x:y'"));
  EXPECT_THAT(whyNot({.variables = {"comm=bash"}}), HasSubstr("--set 'comm=\"text\"'"));
  EXPECT_THAT(whyNot({.variables = {"comm"}}), HasSubstr("--set comm: must be written as VARIABLE=JSON"));
  EXPECT_THAT(whyNot({.maxEntries = {"m=4294967296"}}), HasSubstr("between 1 and 4294967295"));
  EXPECT_THAT(whyNot({.maxEntries = {"m=1k"}}), HasSubstr("between 1 and 4294967295"));
  EXPECT_THAT(whyNot({.deadline = "x"}), HasSubstr("--deadline: 'x' is not a duration"));
}

TEST(ReusedMaps, AreNamedOnceEach) {
  const auto maps = reusedMaps({.reuse = {"a=/sys/fs/bpf/a", "b=17"}}).value();
  ASSERT_EQ(maps.size(), 2U);
  EXPECT_EQ(maps[1].name, "b");
  EXPECT_EQ(maps[1].source, "17");
  EXPECT_THAT(reusedMaps({.reuse = {"a=1", "a=2"}}).error().message, HasSubstr("--reuse a: given twice"));
}

TEST(WithDescriptors, TheObjectIsTheFirst) {
  const auto request = withDescriptors({{"name", "n"}}, "/proc/self/exe", {}).value();
  EXPECT_EQ(request.parameters, (json{{"name", "n"}, {"objectFileDescriptor", 0}}));
  EXPECT_EQ(request.descriptors.size(), 1U);
}

TEST(LoadParameters, SayWhatProgramsAreMadeFor) {
  const auto parameters =
      loadParameters({.targets = {"a=do_exit", "b=veth:veth_open", "c=7:filter", "d=7:filter:decide"}});
  ASSERT_TRUE(parameters) << parameters.error().message;
  EXPECT_EQ(parameters->at("programs"),
            (json{{"a", {{"target", {{"function", "do_exit"}}}}},
                  {"b", {{"target", {{"function", "veth:veth_open"}}}}},
                  {"c", {{"target", {{"objectId", 7}, {"program", "filter"}}}}},
                  {"d", {{"target", {{"objectId", 7}, {"program", "filter"}, {"function", "decide"}}}}}}));
  EXPECT_FALSE(loadParameters({.targets = {"a"}}));
  EXPECT_FALSE(loadParameters({.targets = {"a=f", "a=g"}}));
}

} // namespace
} // namespace btfd::btfctl
