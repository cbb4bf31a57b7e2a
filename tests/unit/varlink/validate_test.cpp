#include "varlink/embedded.h"
#include "varlink/validate.h"

#include <gtest/gtest.h>

namespace btfd::varlink {
namespace {

using nlohmann::json;

const Interface& testInterface() {
  static const Interface interface = parseInterface(R"(interface a.b
type Choice (red, green)
type Inner (number: int, inner: ?Inner)
method M(
  flag: ?bool, number: ?int, fraction: ?float, text: ?string, object: ?object, anything: ?any, choice: ?Choice,
  list: ?[]Inner, map: ?[string]?Inner, inline: ?(a: int, b: (x, y)), names: ?[]?string
) -> (needed: int))")
                                         .value();
  return interface;
}

/// "path reason", or nothing where `text` fits the input of M.
std::string check(std::string_view text) {
  json value = json::parse(text);
  const auto& interface = testInterface();
  const auto valid = validate(interface, interface.methods[0].input, value);
  return valid ? "" : valid.error().path + " " + valid.error().reason;
}

TEST(Validate, AcceptsWhatFits) {
  EXPECT_EQ(check("{}"), "");
  EXPECT_EQ(check(R"({"flag":true,"number":-5,"fraction":1.5,"text":"x","object":{"a":[null]},"choice":"green"})"), "");
  EXPECT_EQ(check(R"({"fraction":3,"number":9223372036854775807})"), "");
  EXPECT_EQ(check(R"({"number":-9223372036854775808})"), "");
  EXPECT_EQ(check(R"({"number":4.0})"), "");
  EXPECT_EQ(check(R"({"anything":[1]})"), "");
  EXPECT_EQ(check(R"({"anything":"x"})"), "");
  EXPECT_EQ(check(R"({"list":[{"number":1,"inner":{"number":2,"inner":null}}],"map":{"a.b":{"number":1},"c":null}})"),
            "");
  EXPECT_EQ(check(R"({"inline":{"a":1,"b":"y"},"names":["a",null]})"), "");
}

TEST(Validate, SaysWhichFieldIsWrongAndWhy) {
  EXPECT_EQ(check("[]"), " must be an object, not array");
  EXPECT_EQ(check(R"({"unknown":1})"), "unknown is not a known field");
  EXPECT_EQ(check(R"({"unknown":null})"), "unknown is not a known field");
  EXPECT_EQ(check(R"({"flag":1})"), "flag must be a boolean, not number");
  EXPECT_EQ(check(R"({"number":"1"})"), "number must be an integer, not string");
  EXPECT_EQ(check(R"({"number":1.5})"), "number must be an integer, not a fraction");
  EXPECT_EQ(check(R"({"number":-0.5})"), "number must be an integer, not a fraction");
  EXPECT_EQ(check(R"({"number":1e300})"), "number is too large to be written as a float: it would not be exact");
  EXPECT_EQ(check(R"({"number":9007199254740994.0})"),
            "number is too large to be written as a float: it would not be exact");
  EXPECT_EQ(check(R"({"number":9223372036854775808})"), "number does not fit a 64-bit signed integer");
  EXPECT_EQ(check(R"({"number":18446744073709551615})"), "number does not fit a 64-bit signed integer");
  EXPECT_EQ(check(R"({"number":true})"), "number must be an integer, not boolean");
  EXPECT_EQ(check(R"({"fraction":"1"})"), "fraction must be a number, not string");
  EXPECT_EQ(check(R"({"text":{}})"), "text must be a string, not object");
  EXPECT_EQ(check(R"({"object":[]})"), "object must be an object, not array");
  EXPECT_EQ(check(R"({"choice":"blue"})"), "choice must be one of: red, green");
  EXPECT_EQ(check(R"({"choice":1})"), "choice must be a string, not number");
  EXPECT_EQ(check(R"({"list":{}})"), "list must be an array, not object");
  EXPECT_EQ(check(R"({"list":[{"number":1},{"number":null}]})"), "list[1].number is missing");
  EXPECT_EQ(check(R"({"list":[{"number":1,"inner":{}}]})"), "list[0].inner.number is missing");
  EXPECT_EQ(check(R"({"list":[null]})"), "list[0] must be an object, not null");
  EXPECT_EQ(check(R"({"map":{"k":{"number":1,"x":2}}})"), "map.k.x is not a known field");
  EXPECT_EQ(check(R"({"map":[]})"), "map must be an object, not array");
  EXPECT_EQ(check(R"({"inline":{"a":1}})"), "inline.b is missing");
  EXPECT_EQ(check(R"({"inline":{"a":1,"b":"z"}})"), "inline.b must be one of: x, y");
  EXPECT_EQ(check(R"({"names":[1]})"), "names[0] must be a string, not number");
}

TEST(Validate, RemovesNullFields) {
  const auto& interface = testInterface();
  json value = json::parse(R"({"flag":null,"text":"x","list":[{"number":1,"inner":null}],"object":{"a":null}})");
  ASSERT_TRUE(validate(interface, interface.methods[0].input, value));
  EXPECT_EQ(value, json::parse(R"({"text":"x","list":[{"number":1}],"object":{"a":null}})"));
}

TEST(Validate, MakesIntegersOfIntegralFloats) {
  const auto& interface = testInterface();
  json value = json::parse(
      R"({"number":28212.0,"fraction":2.0,"list":[{"number":-1e3}],"map":{"a":{"number":-0.0}},"object":{"a":1.0}})");
  ASSERT_TRUE(validate(interface, interface.methods[0].input, value));
  EXPECT_TRUE(value.at("number").is_number_integer());
  EXPECT_EQ(value.at("number"), 28212);
  EXPECT_TRUE(value.at("list").at(0).at("number").is_number_integer());
  EXPECT_EQ(value.at("list").at(0).at("number"), -1000);
  EXPECT_TRUE(value.at("map").at("a").at("number").is_number_integer());
  EXPECT_TRUE(value.at("fraction").is_number_float()) << "that is what it is to be";
  EXPECT_TRUE(value.at("object").at("a").is_number_float()) << "what is in an object is not the IDL's";
}

TEST(Validate, TheLargestIntegralFloatIsExact) {
  const auto& interface = testInterface();
  json value = json::parse(R"({"number":-9007199254740992.0})");
  ASSERT_TRUE(validate(interface, interface.methods[0].input, value));
  EXPECT_EQ(value.at("number"), -9007199254740992);
}

TEST(Validate, ChecksOutputsToo) {
  const auto& interface = testInterface();
  json value = json::object();
  const auto valid = validate(interface, interface.methods[0].output, value);
  ASSERT_FALSE(valid);
  EXPECT_EQ(valid.error().path, "needed");
}

TEST(Validate, GivesThePathThroughALoad) {
  const auto interface = parseInterface(interfaceText("io.btfd")).value();
  json value = json::parse(R"({"objectFileDescriptor":0,"programs":{"foo":{"attach":[{"pid":"1"}]}}})");
  const auto valid = validate(interface, interface.findMethod("Load")->input, value);
  ASSERT_FALSE(valid);
  EXPECT_EQ(valid.error().path, "programs.foo.attach[0].pid");
}

} // namespace
} // namespace btfd::varlink
