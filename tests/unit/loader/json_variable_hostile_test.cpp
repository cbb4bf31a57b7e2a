// What a client's BTF may say that no compiler says.
#include "json_variable_fixture.h"

#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <vector>

namespace btfd::loader {
namespace {

using testing::HasSubstr;

TEST_F(JsonVariable, TypesLargerThanTheirPlaceAreRefused) {
  const std::uint32_t wide = addInt("long", 8);
  const std::uint32_t real = id(btf__add_float(btf(), "double", 8));
  const std::uint32_t many = id(btf__add_array(btf(), wide, wide, 1U << 30U));
  const std::uint32_t choice = id(btf__add_enum64(btf(), "wide", 8, false));
  const std::uint32_t outer = id(btf__add_struct(btf(), "outer", 16));
  btf__add_field(btf(), "near", wide, 0, 0);
  btf__add_field(btf(), "far", wide, 64, 0);
  btf__add_field(btf(), "bits", wide, 120, 8);
  btf__add_field(btf(), "many", many, 0, 0);
  std::uint32_t memory = 7;
  for (const std::uint32_t type : {wide, real, choice}) {
    EXPECT_THAT(write(type, "1", memory), HasSubstr("larger than its place"));
  }
  EXPECT_THAT(write(many, "[1]", memory), HasSubstr("larger than its place"));
  for (const char* text : {R"({"near": 1})", R"({"far": 1})", R"({"bits": 1})", R"({"many": [1]})"}) {
    EXPECT_THAT(write(outer, text, memory), HasSubstr("larger than its place")) << text;
  }
  EXPECT_EQ(memory, 7U);
}

TEST_F(JsonVariable, NoMemoryIsTooLittleForAnything) {
  const std::uint32_t number = addInt("int", 4);
  const std::uint32_t pointer = id(btf__add_ptr(btf(), number));
  const std::span<std::byte> none;
  std::vector<std::byte> empty;
  EXPECT_NE(write(number, "1", std::span(empty)), "");
  EXPECT_NE(write(pointer, "1", std::span(empty)), "");
  EXPECT_TRUE(none.empty());
}

TEST_F(JsonVariable, APointerWithTooSmallAPlaceIsRefused) {
  const std::uint32_t pointer = id(btf__add_ptr(btf(), 0));
  std::uint32_t memory = 7;
  EXPECT_THAT(write(pointer, "1", memory), HasSubstr("larger than its place"));
  EXPECT_EQ(memory, 7U);
}

TEST_F(JsonVariable, ATypedefOfItselfIsBroken) {
  const std::uint32_t type = id(btf__add_typedef(btf(), "self", 1));
  ASSERT_EQ(type, 1U);
  std::uint32_t memory = 0;
  EXPECT_THAT(write(type, "1", memory), HasSubstr("broken"));
}

TEST_F(JsonVariable, AnArrayOfItselfIsRefused) {
  const std::uint32_t type = id(btf__add_array(btf(), 1, 1, 1));
  ASSERT_EQ(type, 1U);
  std::uint32_t memory = 0;
  EXPECT_NE(write(type, "[[[[1]]]]", memory), "");
  EXPECT_NE(write(type, "1", memory), "");
}

TEST_F(JsonVariable, AStructInItselfEndsSomewhere) {
  const std::uint32_t type = id(btf__add_struct(btf(), "self", 4));
  btf__add_field(btf(), "self", 1, 0, 0);
  ASSERT_EQ(type, 1U);
  std::uint32_t memory = 0;
  std::string text = "1";
  for (int i = 0; i < 200; ++i) {
    text = R"({"self": )" + text + "}"; // NOLINT(performance-inefficient-string-concatenation)
  }
  EXPECT_NE(write(type, text, memory), "");
}

TEST_F(JsonVariable, AnAnonymousStructInItselfIsSearchedOnce) {
  const std::uint32_t type = id(btf__add_struct(btf(), nullptr, 4));
  btf__add_field(btf(), nullptr, 1, 0, 0);
  btf__add_field(btf(), nullptr, 1, 0, 0);
  ASSERT_EQ(type, 1U);
  std::uint32_t memory = 0;
  EXPECT_THAT(write(type, R"({"absent": 1})", memory), HasSubstr("no member 'absent'"));
}

TEST_F(JsonVariable, NestedAnonymousMembersTakeNoTimeToSearch) {
  // Two anonymous members in each of 60 levels: 2^60 ways down.
  const std::uint32_t number = addInt("int", 4);
  std::uint32_t inner = id(btf__add_struct(btf(), nullptr, 4));
  btf__add_field(btf(), "deep", number, 0, 0);
  for (int i = 0; i < 60; ++i) {
    const std::uint32_t outer = id(btf__add_union(btf(), nullptr, 4));
    btf__add_field(btf(), nullptr, inner, 0, 0);
    btf__add_field(btf(), nullptr, inner, 0, 0);
    inner = outer;
  }
  std::uint32_t memory = 0;
  EXPECT_THAT(write(inner, R"({"absent": 1})", memory), HasSubstr("no member 'absent'"));
  EXPECT_EQ(write(inner, R"({"deep": 5})", memory), "");
  EXPECT_EQ(memory, 5U);
}

TEST_F(JsonVariable, AMessageDoesNotRepeatAHugeValue) {
  const std::uint32_t type = addInt("int", 4);
  std::uint32_t memory = 0;
  EXPECT_LT(write(type, '"' + std::string(1'000'000, 'x') + '"', memory).size(), 1000U);
}

TEST_F(JsonVariable, AMemberAtNoByteBoundaryIsRefused) {
  const std::uint32_t number = addInt("int", 4);
  const std::uint32_t type = id(btf__add_struct(btf(), "odd", 8));
  btf__add_field(btf(), "odd", number, 0, 0);
  // libbpf would not add such a member, but takes one that is there.
  btf_members(const_cast<struct btf_type*>(btf__type_by_id(btf(), type)))->offset = 3; // NOLINT
  std::uint64_t memory = 0;
  EXPECT_THAT(write(type, R"({"odd": 1})", memory), HasSubstr("byte boundary"));
}

} // namespace
} // namespace btfd::loader
