#include "varlink/embedded.h"
#include "varlink/interface.h"

#include <gtest/gtest.h>

#include <string>

namespace btfd::varlink {
namespace {

using Kind = Type::Kind;

TEST(Interface, AllEmbeddedInterfacesParse) {
  for (const std::string name : {"io.btfd", "org.varlink.service", "io.systemd.service"}) {
    const auto text = interfaceText(name);
    const auto interface = parseInterface(text);
    ASSERT_TRUE(interface) << name << ":" << interface.error().message;
    EXPECT_EQ(interface->name, name);
    EXPECT_EQ(interface->text, text);
    EXPECT_FALSE(interface->comment.empty());
    for (const auto& method : interface->methods) {
      EXPECT_FALSE(method.comment.empty()) << name << "." << method.name;
      for (const auto* type : {&method.input, &method.output}) {
        for (const auto& field : type->fields) {
          EXPECT_FALSE(field.comment.empty()) << name << "." << method.name << " " << field.name;
        }
      }
    }
  }
  EXPECT_TRUE(interfaceText("io.btfd.Other").empty());
}

TEST(Interface, KnowsWhatTheMethodsOfIoBtfdNeed) {
  const auto interface = parseInterface(interfaceText("io.btfd"));
  ASSERT_TRUE(interface);
  const auto* monitor = interface->findMethod("Monitor");
  ASSERT_NE(monitor, nullptr);
  EXPECT_TRUE(monitor->requiresMore);
  EXPECT_TRUE(monitor->supportsMore);
  EXPECT_FALSE(monitor->takesDescriptors);
  const auto* load = interface->findMethod("Load");
  ASSERT_NE(load, nullptr);
  EXPECT_FALSE(load->requiresMore);
  EXPECT_TRUE(load->takesDescriptors);
  EXPECT_TRUE(interface->findMethod("Attach")->takesDescriptors) << "within AttachTarget";
  EXPECT_FALSE(interface->findMethod("Detach")->takesDescriptors);
  EXPECT_FALSE(interface->findMethod("GetDescriptors")->takesDescriptors) << "only its answer has some";
  EXPECT_EQ(interface->findMethod("Nothing"), nullptr);
  ASSERT_NE(interface->findError("Busy"), nullptr);
  EXPECT_EQ(interface->findError("Busy")->fields.fields.size(), 2U);
}

TEST(Interface, ParsesTheWholeGrammar) {
  const auto interface = parseInterface(R"(
# What this file is about

# About the
# interface
interface com.example-1.a--b.0c

# A type
type Everything (
  # one
  # and more
  a: bool, b: int, c: float, d: string, e: object, f: any,

  # cut off by a blank line

  g: ?int, h: []string, i: [string]int, j: ?[]?[string][]Everything,
  k: (x: int, y: ()), l: ?(one, two_2), m: Choice, n_1A: string # behind a field
  , type: int, method: int, error: int, interface: int)
type Choice(only)type Nothing()
# [Supports 'more' flag]
method Do (in: Everything)->(out: Nothing)
error Bad(why: string)#end)");
  ASSERT_TRUE(interface) << interface.error().message;
  EXPECT_EQ(interface->name, "com.example-1.a--b.0c");
  EXPECT_EQ(interface->comment, "About the\ninterface");
  ASSERT_EQ(interface->types.size(), 3U);
  const auto& everything = interface->types[0];
  EXPECT_EQ(everything.comment, "A type");
  const auto& fields = everything.type.fields;
  ASSERT_EQ(fields.size(), 18U);
  EXPECT_EQ(fields[0].comment, "one\nand more");
  EXPECT_EQ(fields[6].comment, "");
  const Kind kinds[] = {Kind::boolean,   Kind::integer,     Kind::floating, Kind::string, Kind::object,
                        Kind::any,       Kind::integer,     Kind::array,    Kind::map,    Kind::array,
                        Kind::structure, Kind::enumeration, Kind::named,    Kind::string};
  for (std::size_t index = 0; index < std::size(kinds); ++index) {
    EXPECT_EQ(fields[index].type.kind, kinds[index]) << fields[index].name;
    EXPECT_EQ(fields[index].type.nullable,
              fields[index].name == "g" || fields[index].name == "j" || fields[index].name == "l");
  }
  const Type& deep = fields[9].type.element[0];
  EXPECT_TRUE(deep.nullable);
  EXPECT_EQ(deep.kind, Kind::map);
  EXPECT_EQ(deep.element[0].element[0].kind, Kind::named);
  EXPECT_EQ(deep.element[0].element[0].target, 0U);
  EXPECT_EQ(fields[11].type.fields[1].name, "two_2");
  EXPECT_EQ(fields[12].type.target, 1U);
  EXPECT_EQ(interface->types[1].type.kind, Kind::enumeration);
  EXPECT_EQ(interface->types[2].type.kind, Kind::structure);
  EXPECT_TRUE(interface->methods[0].supportsMore);
  EXPECT_FALSE(interface->methods[0].requiresMore);
}

struct Wrong {
  const char* text;
  const char* error;
};

TEST(Interface, ErrorsTellLineAndColumn) {
  const Wrong cases[] = {
      {"", "1:1: expected \"interface\", found the end of the text"},
      {"type A ()", "1:1: expected \"interface\""},
      {"interface", "1:10: expected an interface name"},
      {"interface a", "1:11: expected an interface name"},
      {"interface a..b", "1:11: expected an interface name"},
      {"interface a.b.", "1:11: expected an interface name"},
      {"interface a.-b", "1:11: expected an interface name"},
      {"interface a.b-", "1:11: expected an interface name"},
      {"interface 1a.b", "1:11: expected an interface name"},
      {"interface a.b\nstruct A ()", "2:1: expected \"type\", \"method\" or \"error\", found \"struct\""},
      {"interface a.b\ntype a ()", "2:6: expected a name"},
      {"interface a.b\ntype A_B ()", "2:6: expected a name"},
      {"interface a.b\ntype A", "2:7: expected \"(\", found the end"},
      {"interface a.b\ntype A (", "2:9: expected a field name, found the end"},
      {"interface a.b\ntype A (a: int,)", "2:16: expected a field name, found \")\""},
      {"interface a.b\ntype A (a int)", "2:11: expected \")\""},
      {"interface a.b\ntype A (a: int, b)", "2:18: expected \":\""},
      {"interface a.b\ntype A (a, b: int)", "2:13: expected \")\""},
      {"interface a.b\ntype A (1a: int)", "2:9: expected a field name"},
      {"interface a.b\ntype A (a__b: int)", "2:9: expected a field name"},
      {"interface a.b\ntype A (a_: int)", "2:9: expected a field name"},
      {"interface a.b\ntype A (a-b: int)", "2:9: expected a field name"},
      {"interface a.b\ntype A (a: )", "2:12: expected a type"},
      {"interface a.b\ntype A (a: integer)", "2:12: expected a type"},
      {"interface a.b\ntype A (a: ??int)", "2:13: expected a type behind"},
      {"interface a.b\ntype A (a: [int]string)", "2:13: expected \"]\""},
      {"interface a.b\ntype A (a: [string]", "2:20: expected a type"},
      {"interface a.b\ntype A (a: int, a: int)", "2:17: field \"a\" is defined twice"},
      {"interface a.b\ntype A (x, x)", "2:12: field \"x\" is defined twice"},
      {"interface a.b\ntype A ()\nmethod A() -> ()", "3:8: \"A\" is defined twice"},
      {"interface a.b\ntype A (a: B)", "2:12: type \"B\" is not defined"},
      {"interface a.b\nmethod M(a: []?[string]B) -> ()", "2:24: type \"B\" is not defined"},
      {"interface a.b\ntype A (a: A)", "2:6: type \"A\" contains itself"},
      {"interface a.b\ntype A (b: (c: B))\ntype B (a: A)", "2:6: type \"A\" contains itself"},
      {"interface a.b\nmethod M()", "2:11: expected \"->\""},
      {"interface a.b\nmethod M() - > ()", "2:12: expected \"->\""},
      {"interface a.b\nmethod M(a, b) -> ()", "2:9: expected fields with types"},
      {"interface a.b\nerror E", "2:8: expected \"(\""},
      {"interface a.b\nerror E (a: int", "2:16: expected \")\""},
      {"interface a.b\ntype A (a: int) $", "2:17: expected \"type\", \"method\" or \"error\", found \"$\""},
  };
  for (const auto& wrong : cases) {
    const auto interface = parseInterface(wrong.text);
    ASSERT_FALSE(interface) << wrong.text;
    EXPECT_TRUE(interface.error().message.starts_with(wrong.error)) << wrong.text << "\n" << interface.error().message;
  }
}

TEST(Interface, ATypeMayContainItselfWhereItCanEnd) {
  EXPECT_TRUE(parseInterface("interface a.b\ntype A (a: ?A)"));
  EXPECT_TRUE(parseInterface("interface a.b\ntype A (a: []A, b: [string]A)"));
}

TEST(Interface, NestingIsBounded) {
  std::string brackets;
  for (int level = 0; level < 100'000; ++level) {
    brackets += "[]";
  }
  EXPECT_FALSE(parseInterface("interface a.b\ntype A (a: " + brackets + "int)"));
  std::string structures;
  for (int level = 0; level < 100'000; ++level) {
    structures += "(a: ";
  }
  EXPECT_FALSE(parseInterface("interface a.b\ntype A " + structures));
}

} // namespace
} // namespace btfd::varlink
