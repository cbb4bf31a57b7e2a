#include "json_variable_fixture.h"

#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <limits>

namespace btfd::loader {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// All of an integer type: its limits are taken, what is beyond them is not.
template <typename T>
void checkLimits(const std::function<std::string(const std::string&, T&)>& write) {
  T memory = 1;
  const T least = std::numeric_limits<T>::min();
  const T most = std::numeric_limits<T>::max();
  for (const T value : {least, most, T{0}, T{42}}) {
    memory = 1;
    EXPECT_EQ(write(std::to_string(value), memory), "");
    EXPECT_EQ(memory, value);
  }
  memory = 7;
  if constexpr (sizeof(T) < sizeof(std::int64_t)) {
    EXPECT_NE(write(std::to_string(std::int64_t{most} + 1), memory), "");
    EXPECT_NE(write(std::to_string(std::int64_t{least} - 1), memory), "");
  } else if constexpr (std::is_signed_v<T>) {
    EXPECT_NE(write("9223372036854775808", memory), "");
    EXPECT_NE(write("-9223372036854775809", memory), "");
  } else {
    EXPECT_NE(write("18446744073709551616", memory), "");
    EXPECT_NE(write("-1", memory), "");
  }
  EXPECT_EQ(memory, 7) << "what is refused changes nothing";
}

TEST_F(JsonVariable, IntegersAreTakenUpToTheirLimits) {
  const auto check = [&]<typename T>(const char* name, T) {
    SCOPED_TRACE(name);
    const std::uint32_t type = addInt(name, sizeof(T), std::is_signed_v<T> ? BTF_INT_SIGNED : 0);
    checkLimits<T>([&](const std::string& text, T& memory) { return write(type, text, memory); });
  };
  check("signed char", std::int8_t{});
  check("unsigned char", std::uint8_t{});
  check("short", std::int16_t{});
  check("unsigned short", std::uint16_t{});
  check("int", std::int32_t{});
  check("unsigned int", std::uint32_t{});
  check("long", std::int64_t{});
  check("unsigned long", std::uint64_t{});
}

TEST_F(JsonVariable, A128BitIntegerIsFilledWithTheSign) {
  const std::uint32_t type = addInt("__int128", 16, BTF_INT_SIGNED);
  std::array<std::uint64_t, 2> memory{1, 1};
  EXPECT_EQ(write(type, "-2", memory), "");
  EXPECT_EQ(memory, (std::array<std::uint64_t, 2>{UINT64_MAX - 1, UINT64_MAX}));
  EXPECT_EQ(write(type, "18446744073709551615", memory), "");
  EXPECT_EQ(memory, (std::array<std::uint64_t, 2>{UINT64_MAX, 0}));
}

TEST_F(JsonVariable, PositiveNumbersOfSignedJsonAreCheckedLikeUnsignedOnes) {
  // As programs make them, unlike those that are parsed.
  const std::uint32_t type = addInt("unsigned char", 1);
  std::uint8_t memory = 7;
  EXPECT_FALSE(writeVariable(*btf(), type, nlohmann::json(300), std::as_writable_bytes(std::span(&memory, 1)), "v"));
  EXPECT_EQ(memory, 7);
  EXPECT_TRUE(writeVariable(*btf(), type, nlohmann::json(200), std::as_writable_bytes(std::span(&memory, 1)), "v"));
  EXPECT_EQ(memory, 200);
}

TEST_F(JsonVariable, IntegersNeedWholeNumbers) {
  const std::uint32_t type = addInt("int", 4, BTF_INT_SIGNED);
  std::int32_t memory = 7;
  for (const char* text : {"1.5", "\"1.5\"", "null", "[]", "{}", "\"\""}) {
    EXPECT_NE(write(type, text, memory), "") << text;
  }
  EXPECT_EQ(memory, 7);
  EXPECT_EQ(write(type, "true", memory), "");
  EXPECT_EQ(memory, 1);
}

TEST_F(JsonVariable, BoolsAreTrueOrFalse) {
  const std::uint32_t type = addInt("_Bool", 1, BTF_INT_BOOL);
  std::uint8_t memory = 7;
  EXPECT_EQ(write(type, "true", memory), "");
  EXPECT_EQ(memory, 1);
  EXPECT_EQ(write(type, "false", memory), "");
  EXPECT_EQ(memory, 0);
  EXPECT_EQ(write(type, "1", memory), "");
  EXPECT_EQ(memory, 1);
  for (const char* text : {"2", "-1", "\"t\"", "1.0", "null"}) {
    EXPECT_THAT(write(type, text, memory), HasSubstr("true or false")) << text;
  }
}

TEST_F(JsonVariable, CharsAreNumbersOrOneCharacter) {
  const std::uint32_t type = addInt("char", 1, BTF_INT_SIGNED);
  std::uint8_t memory = 0;
  EXPECT_EQ(write(type, "\"x\"", memory), "");
  EXPECT_EQ(memory, 'x');
  EXPECT_EQ(write(type, "-128", memory), "");
  EXPECT_EQ(memory, 128);
  EXPECT_EQ(write(type, "255", memory), "") << "plain char's sign is nobody's intention";
  EXPECT_EQ(memory, 255);
  EXPECT_NE(write(type, "256", memory), "");
  EXPECT_NE(write(type, "-129", memory), "");
  EXPECT_NE(write(type, "\"xy\"", memory), "");
}

TEST_F(JsonVariable, FloatsTakeAnyNumberThatFits) {
  const std::uint32_t wide = id(btf__add_float(btf(), "double", 8));
  const std::uint32_t narrow = id(btf__add_float(btf(), "float", 4));
  double number = 0;
  EXPECT_EQ(write(wide, "-2.5e100", number), "");
  EXPECT_EQ(number, -2.5e100);
  EXPECT_EQ(write(wide, "3", number), "");
  EXPECT_EQ(number, 3.0);
  float small = 0;
  EXPECT_EQ(write(narrow, "0.5", small), "");
  EXPECT_EQ(small, 0.5F);
  EXPECT_THAT(write(narrow, "1e300", small), HasSubstr("does not fit"));
  EXPECT_NE(write(narrow, "\"0.5\"", small), "");
  EXPECT_NE(write(narrow, "true", small), "");
}

TEST_F(JsonVariable, FloatsOfOtherSizesAreRefused) {
  const std::uint32_t type = id(btf__add_float(btf(), "long double", 16));
  std::array<std::byte, 16> memory{};
  EXPECT_THAT(write(type, "1", memory), HasSubstr("16 bytes"));
}

TEST_F(JsonVariable, EnumsTakeEnumeratorsAndNumbers) {
  const std::uint32_t type = id(btf__add_enum(btf(), "mode", 4));
  btf__add_enum_value(btf(), "OFF", 0);
  btf__add_enum_value(btf(), "ON", 5);
  btf__add_enum_value(btf(), "NEGATIVE", -3);
  std::int32_t memory = 1;
  EXPECT_EQ(write(type, "\"ON\"", memory), "");
  EXPECT_EQ(memory, 5);
  EXPECT_EQ(write(type, "\"NEGATIVE\"", memory), "");
  EXPECT_EQ(memory, -3);
  EXPECT_EQ(write(type, "77", memory), "");
  EXPECT_EQ(memory, 77);
  EXPECT_EQ(write(type, "-1", memory), "");
  EXPECT_EQ(memory, -1);
  EXPECT_EQ(write(type, "4294967295", memory), "") << "its sign is a hint only";
  EXPECT_THAT(write(type, "\"MAYBE\"", memory), AllOf(HasSubstr("enum mode"), HasSubstr("MAYBE")));
  EXPECT_THAT(write(type, "\"NEGATVE\"", memory), HasSubstr("did you mean 'NEGATIVE'?"));
  EXPECT_NE(write(type, "4294967296", memory), "");
  EXPECT_NE(write(type, "true", memory), "");
}

TEST_F(JsonVariable, AnEnumOfOneByteTakesOneByte) {
  const std::uint32_t type = id(btf__add_enum(btf(), "small", 1));
  btf__add_enum_value(btf(), "LAST", 200);
  std::array<std::uint8_t, 2> memory{1, 1};
  EXPECT_EQ(write(type, "\"LAST\"", memory), "");
  EXPECT_EQ(memory, (std::array<std::uint8_t, 2>{200, 1}));
}

TEST_F(JsonVariable, WideEnumsTakeWideEnumerators) {
  const std::uint32_t type = id(btf__add_enum64(btf(), "wide", 8, false));
  btf__add_enum64_value(btf(), "HIGH", 1ULL << 63U);
  const std::uint32_t negative = id(btf__add_enum64(btf(), "negative", 8, true));
  btf__add_enum64_value(btf(), "LOW", static_cast<std::uint64_t>(-5));
  std::uint64_t memory = 0;
  EXPECT_EQ(write(type, "\"HIGH\"", memory), "");
  EXPECT_EQ(memory, 1ULL << 63U);
  EXPECT_EQ(write(type, "18446744073709551615", memory), "");
  EXPECT_EQ(memory, UINT64_MAX);
  EXPECT_EQ(write(negative, "\"LOW\"", memory), "");
  EXPECT_EQ(static_cast<std::int64_t>(memory), -5);
}

TEST_F(JsonVariable, PointersAreUnsignedNumbers) {
  const std::uint32_t type = id(btf__add_ptr(btf(), addInt("int", 4)));
  std::uint64_t memory = 0;
  EXPECT_EQ(write(type, "18446744073709551615", memory), "");
  EXPECT_EQ(memory, UINT64_MAX);
  EXPECT_THAT(write(type, "-1", memory), HasSubstr("pointer"));
  EXPECT_NE(write(type, "\"main\"", memory), "");
}

TEST_F(JsonVariable, ArraysTakeUpToTheirNumberOfElementsAndKeepTheRest) {
  const std::uint32_t element = addInt("int", 4, BTF_INT_SIGNED);
  const std::uint32_t type = id(btf__add_array(btf(), element, element, 3));
  std::array<std::int32_t, 3> memory{1, 2, 3};
  EXPECT_EQ(write(type, "[10, 20]", memory), "");
  EXPECT_EQ(memory, (std::array<std::int32_t, 3>{10, 20, 3}));
  EXPECT_EQ(write(type, "[]", memory), "");
  EXPECT_THAT(write(type, "[1, 2, 3, 4]", memory),
              AllOf(HasSubstr("int[3]"), HasSubstr("it takes at most 3 elements, got 4")));
  EXPECT_THAT(write(type, "7", memory), HasSubstr("needs an array"));
  EXPECT_THAT(write(type, "\"text\"", memory), HasSubstr("needs an array"));
  EXPECT_THAT(write(type, "[1, 2.5]", memory), HasSubstr("'v[1]' of type int"));
}

TEST_F(JsonVariable, CharArraysTakeStringsThatFitWithTheirNul) {
  const std::uint32_t element = addInt("char", 1, BTF_INT_SIGNED);
  const std::uint32_t type = id(btf__add_array(btf(), element, element, 4));
  std::array<char, 4> memory{'x', 'x', 'x', 'x'};
  EXPECT_EQ(write(type, "\"ab\"", memory), "");
  EXPECT_EQ(memory, (std::array<char, 4>{'a', 'b', 0, 0}));
  EXPECT_EQ(write(type, "\"abc\"", memory), "");
  EXPECT_EQ(memory, (std::array<char, 4>{'a', 'b', 'c', 0}));
  EXPECT_THAT(write(type, "\"abcd\"", memory), HasSubstr("do not fit"));
  EXPECT_EQ(write(type, "[65, 66]", memory), "");
  EXPECT_EQ(memory, (std::array<char, 4>{'A', 'B', 'c', 0}));
}

TEST_F(JsonVariable, ArraysOfArraysNest) {
  const std::uint32_t element = addInt("unsigned char", 1);
  const std::uint32_t inner = id(btf__add_array(btf(), element, element, 2));
  const std::uint32_t outer = id(btf__add_array(btf(), element, inner, 2));
  std::array<std::uint8_t, 4> memory{};
  EXPECT_EQ(write(outer, "[[1, 2], [3, 4]]", memory), "");
  EXPECT_EQ(memory, (std::array<std::uint8_t, 4>{1, 2, 3, 4}));
  EXPECT_THAT(write(outer, "[[1, 2], [3, 256]]", memory), HasSubstr("v[1][1]"));
}

TEST_F(JsonVariable, StructsTakeTheMembersThatAreNamed) {
  const std::uint32_t number = addInt("int", 4, BTF_INT_SIGNED);
  const std::uint32_t limits = id(btf__add_array(btf(), number, number, 3));
  const std::uint32_t inner = id(btf__add_struct(btf(), "inner", 4));
  btf__add_field(btf(), "level", number, 0, 0);
  const std::uint32_t outer = id(btf__add_struct(btf(), "config", 20));
  btf__add_field(btf(), "first", number, 0, 0);
  btf__add_field(btf(), "limits", limits, 32, 0);
  btf__add_field(btf(), "inner", inner, 128, 0);
  std::array<std::int32_t, 5> memory{1, 2, 3, 4, 5};
  EXPECT_EQ(write(outer, R"({"limits": [20], "inner": {"level": 50}})", memory), "");
  EXPECT_EQ(memory, (std::array<std::int32_t, 5>{1, 20, 3, 4, 50}));
  EXPECT_EQ(write(outer, "{}", memory), "");
  EXPECT_THAT(write(outer, R"({"limits": [1, 2, "x"]})", memory), HasSubstr("'v.limits[2]' of type int"));
  EXPECT_THAT(write(outer, R"({"inner": {"depth": 1}})", memory),
              AllOf(HasSubstr("'v.inner' of type struct inner"), HasSubstr("no member 'depth'")));
  EXPECT_THAT(write(outer, R"({"inner": {"levle": 1}})", memory),
              HasSubstr("no member 'levle'; did you mean 'level'?"));
  EXPECT_THAT(write(outer, "[1]", memory), AllOf(HasSubstr("struct config"), HasSubstr("needs an object")));
}

TEST_F(JsonVariable, MembersOfAnonymousMembersAreMembers) {
  const std::uint32_t number = addInt("unsigned int", 4);
  const std::uint32_t wide = addInt("unsigned long", 8);
  const std::uint32_t variants = id(btf__add_union(btf(), nullptr, 8));
  btf__add_field(btf(), "narrow", number, 0, 0);
  btf__add_field(btf(), "wide", wide, 0, 0);
  const std::uint32_t group = id(btf__add_struct(btf(), nullptr, 12));
  btf__add_field(btf(), "tag", number, 0, 0);
  btf__add_field(btf(), nullptr, variants, 32, 0);
  const std::uint32_t outer = id(btf__add_struct(btf(), "outer", 16));
  btf__add_field(btf(), "first", number, 0, 0);
  btf__add_field(btf(), nullptr, group, 32, 0);
  std::array<std::uint32_t, 4> memory{};
  EXPECT_EQ(write(outer, R"({"tag": 1, "wide": 4294967298})", memory), "");
  EXPECT_EQ(memory, (std::array<std::uint32_t, 4>{0, 1, 2, 1}));
  EXPECT_EQ(write(outer, R"({"narrow": 9})", memory), "");
  EXPECT_EQ(memory, (std::array<std::uint32_t, 4>{0, 1, 9, 1}));
  EXPECT_THAT(write(outer, R"({"": 1})", memory), HasSubstr("no member ''"));
}

TEST_F(JsonVariable, UnionsTakeAnyOfTheirMembers) {
  const std::uint32_t number = addInt("unsigned int", 4);
  const std::uint32_t byte = addInt("unsigned char", 1);
  const std::uint32_t type = id(btf__add_union(btf(), "either", 4));
  btf__add_field(btf(), "number", number, 0, 0);
  btf__add_field(btf(), "byte", byte, 0, 0);
  std::uint32_t memory = 0;
  EXPECT_EQ(write(type, R"({"number": 305419896})", memory), "");
  EXPECT_EQ(memory, 0x12345678U);
  EXPECT_THAT(write(type, R"({"neither": 1})", memory), HasSubstr("union either"));
}

TEST_F(JsonVariable, BitfieldsKeepTheirNeighbours) {
  struct Bits {
    unsigned first : 3;
    unsigned middle : 7;
    unsigned last : 22;
  };

  const std::uint32_t number = addInt("unsigned int", 4);
  const std::uint32_t type = id(btf__add_struct(btf(), "bits", 4));
  btf__add_field(btf(), "first", number, 0, 3);
  btf__add_field(btf(), "middle", number, 3, 7);
  btf__add_field(btf(), "last", number, 10, 22);
  Bits memory{5, 0, 0x2aaaaa};
  EXPECT_EQ(write(type, R"({"middle": 127})", memory), "");
  EXPECT_EQ(memory.first, 5U);
  EXPECT_EQ(memory.middle, 127U);
  EXPECT_EQ(memory.last, 0x2aaaaaU);
  EXPECT_EQ(write(type, R"({"first": 2, "middle": 127, "last": true})", memory), "");
  EXPECT_EQ(memory.first, 2U);
  EXPECT_EQ(memory.middle, 127U);
  EXPECT_EQ(memory.last, 1U);
  EXPECT_THAT(write(type, R"({"middle": 128})", memory), AllOf(HasSubstr("v.middle"), HasSubstr("7 bits")));
  EXPECT_NE(write(type, R"({"middle": -65})", memory), "");
  EXPECT_NE(write(type, R"({"middle": "x"})", memory), "");
}

TEST_F(JsonVariable, ModifiersAndTypedefsAreLookedThrough) {
  const std::uint32_t number = addInt("int", 4, BTF_INT_SIGNED);
  const std::uint32_t constant = id(btf__add_const(btf(), number));
  const std::uint32_t changing = id(btf__add_volatile(btf(), constant));
  const std::uint32_t named = id(btf__add_typedef(btf(), "pid_t", changing));
  const std::uint32_t tagged = id(btf__add_type_tag(btf(), "percpu", named));
  std::int32_t memory = 0;
  EXPECT_EQ(write(tagged, "-7", memory), "");
  EXPECT_EQ(memory, -7);
}

TEST_F(JsonVariable, KindsWithoutValuesAreRefused) {
  const std::uint32_t number = addInt("int", 4);
  const std::uint32_t forward = id(btf__add_fwd(btf(), "later", BTF_FWD_STRUCT));
  const std::uint32_t prototype = id(btf__add_func_proto(btf(), number));
  std::uint32_t memory = 0;
  EXPECT_THAT(write(forward, "1", memory), HasSubstr("incomplete"));
  EXPECT_THAT(write(prototype, "1", memory), HasSubstr("cannot be set"));
  EXPECT_NE(write(0, "1", memory), "") << "void";
  EXPECT_THAT(write(4242, "1", memory), HasSubstr("broken"));
}

TEST_F(JsonVariable, IntegersMayBeTexts) {
  const std::uint32_t u64 = addInt("unsigned long", 8);
  std::uint64_t memory = 0;
  EXPECT_EQ(write(u64, R"("18446744073709551615")", memory), "");
  EXPECT_EQ(memory, UINT64_MAX);
  EXPECT_EQ(write(u64, R"("0xfedcba9876543210")", memory), "");
  EXPECT_EQ(memory, 0xfedcba9876543210);
  const std::uint32_t s64 = addInt("long", 8, BTF_INT_SIGNED);
  std::int64_t number = 0;
  EXPECT_EQ(write(s64, R"("-9223372036854775808")", number), "");
  EXPECT_EQ(number, INT64_MIN);
  for (const char* text : {R"("")", R"("-")", R"("0x")", R"("1e3")", R"(" 1")", R"("1 ")", R"("18446744073709551616")",
                           R"("--1")", R"("0x-1")"}) {
    EXPECT_THAT(write(u64, text, memory), HasSubstr("needs an integer")) << text;
  }
  EXPECT_THAT(write(s64, R"("-9223372036854775809")", number), HasSubstr("needs an integer"));
  EXPECT_THAT(write(addInt("int", 4, BTF_INT_SIGNED), R"("4294967296")", number), HasSubstr("does not fit"));
}

TEST_F(JsonVariable, BitfieldsAreWhatTheirTypeIs) {
  const std::uint32_t color = id(btf__add_enum(btf(), "color", 4));
  btf__add_enum_value(btf(), "RED", 1);
  btf__add_enum_value(btf(), "BLUE", -2);
  const std::uint32_t u32 = addInt("unsigned int", 4);
  const std::uint32_t s32 = addInt("int", 4, BTF_INT_SIGNED);
  const std::uint32_t type = id(btf__add_struct(btf(), "flags", 4));
  btf__add_field(btf(), "hue", color, 0, 3);
  btf__add_field(btf(), "count", u32, 3, 4);
  btf__add_field(btf(), "shift", s32, 7, 4);
  std::uint32_t memory = 0;
  EXPECT_EQ(write(type, R"({"hue": "BLUE", "count": 15, "shift": -8})", memory), "");
  EXPECT_EQ(memory, 0b1000'1111'110U);
  EXPECT_EQ(write(type, R"({"hue": "RED", "count": "0x3", "shift": 7})", memory), "");
  EXPECT_EQ(memory, 0b0111'0011'001U);
  for (const char* text : {R"({"count": -1})", R"({"count": 16})", R"({"shift": 8})", R"({"shift": -9})",
                           R"({"hue": "PINK"})", R"({"hue": 8})", R"({"count": 1.5})"}) {
    EXPECT_THAT(write(type, text, memory), AllOf(HasSubstr("bitfield of"), HasSubstr("does not fit"))) << text;
  }
}

} // namespace
} // namespace btfd::loader
