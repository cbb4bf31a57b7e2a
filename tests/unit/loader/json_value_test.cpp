#include "json_variable_fixture.h"
#include "object/json_value.h"

#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace btfd::loader {
namespace {

/// Values that are read by BTF made by hand.
class JsonValue : public JsonVariable {
 protected:
  /// What is read of `memory`, as text; "nothing" if that is it.
  template <typename T>
  std::string read(std::uint32_t type, const T& object) {
    const auto value = object::readValue(*btf(), type, std::as_bytes(std::span(&object, 1)));
    return value ? value->dump() : "nothing";
  }

  std::uint32_t addArray(std::uint32_t element, std::uint32_t count) {
    return id(btf__add_array(btf(), addInt("index", 4), element, count));
  }
};

TEST_F(JsonValue, IntegersAreNumbersAsLongAs64BitsWithASignHoldThem) {
  const std::uint32_t u64 = addInt("unsigned long", 8);
  EXPECT_EQ(read(u64, std::uint64_t{0}), "0");
  EXPECT_EQ(read(u64, std::uint64_t{INT64_MAX}), "9223372036854775807");
  EXPECT_EQ(read(u64, std::uint64_t{UINT64_MAX}), R"("18446744073709551615")");
  EXPECT_EQ(read(addInt("long", 8, BTF_INT_SIGNED), INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(read(addInt("signed char", 1, BTF_INT_SIGNED), std::int8_t{-1}), "-1");
  EXPECT_EQ(read(addInt("unsigned char", 1), std::uint8_t{255}), "255");
  EXPECT_EQ(read(addInt("__int128", 16, BTF_INT_SIGNED), std::array<std::uint64_t, 2>{1, 0}), R"("0x1")");
  EXPECT_EQ(read(addInt("__int128", 16, 0), std::array<std::uint64_t, 2>{0, 1}), R"("0x10000000000000000")");
}

TEST_F(JsonValue, BooleansPointersAndFloats) {
  const std::uint32_t boolean = addInt("_Bool", 1, BTF_INT_BOOL);
  EXPECT_EQ(read(boolean, std::uint8_t{1}), "true");
  EXPECT_EQ(read(boolean, std::uint8_t{0}), "false");
  EXPECT_EQ(read(boolean, std::uint8_t{2}), "2");
  EXPECT_EQ(read(id(btf__add_ptr(btf(), boolean)), std::uint64_t{0xffff888012345678}), R"("0xffff888012345678")");
  EXPECT_EQ(read(id(btf__add_ptr(btf(), boolean)), std::uint64_t{0}), R"("0x0")");
  EXPECT_EQ(read(id(btf__add_float(btf(), "double", 8)), 1.5), "1.5");
  EXPECT_EQ(read(id(btf__add_float(btf(), "float", 4)), 0.25F), "0.25");
  EXPECT_EQ(read(id(btf__add_float(btf(), "double", 8)), std::numeric_limits<double>::infinity()),
            R"("0x7ff0000000000000")");
}

TEST_F(JsonValue, EnumsAreTheirEnumerators) {
  const std::uint32_t color = id(btf__add_enum(btf(), "color", 4));
  btf__add_enum_value(btf(), "RED", 0);
  btf__add_enum_value(btf(), "BLUE", -3);
  EXPECT_EQ(read(color, std::int32_t{0}), R"("RED")");
  EXPECT_EQ(read(color, std::int32_t{-3}), R"("BLUE")");
  EXPECT_EQ(read(color, std::int32_t{5}), "5");
  const std::uint32_t wide = id(btf__add_enum64(btf(), "wide", 8, false));
  btf__add_enum64_value(btf(), "HIGH", std::uint64_t{1} << 63U);
  EXPECT_EQ(read(wide, std::uint64_t{1} << 63U), R"("HIGH")");
  EXPECT_EQ(read(wide, (std::uint64_t{1} << 63U) + 1), R"("9223372036854775809")");
}

TEST_F(JsonValue, ArraysOfCharAreTextWhereTheyAreText) {
  const std::uint32_t text = addArray(addInt("char", 1, BTF_INT_SIGNED), 4);
  EXPECT_EQ(read(text, std::array<char, 4>{'a', 'b', 0, 0}), R"("ab")");
  EXPECT_EQ(read(text, std::array<char, 4>{}), R"("")");
  EXPECT_EQ(read(text, std::array<char, 4>{'a', 'b', 'c', 'd'}), "[97,98,99,100]") << "no NUL at the end";
  EXPECT_EQ(read(text, std::array<char, 4>{'a', 0, 'c', 0}), "[97,0,99,0]") << "something behind the NUL";
  EXPECT_EQ(read(text, std::array<char, 4>{'\x1b', '[', 0, 0}), "[27,91,0,0]");
  EXPECT_EQ(read(text, std::array<char, 4>{'\xff', 0, 0, 0}), "[-1,0,0,0]");
  EXPECT_EQ(read(addArray(addInt("unsigned char", 1), 2), std::array<char, 2>{'a', 0}), "[97,0]");
}

TEST_F(JsonValue, StructsUnionsAndBitfields) {
  const std::uint32_t u32 = addInt("unsigned int", 4);
  const std::uint32_t s32 = addInt("int", 4, BTF_INT_SIGNED);
  const std::uint32_t color = id(btf__add_enum(btf(), "color", 4));
  btf__add_enum_value(btf(), "GREEN", 2);
  const std::uint32_t either = id(btf__add_union(btf(), "", 4));
  btf__add_field(btf(), "number", u32, 0, 0);
  btf__add_field(btf(), "difference", s32, 0, 0);
  const std::uint32_t whole = id(btf__add_struct(btf(), "whole", 12));
  btf__add_field(btf(), "first", u32, 0, 0);
  btf__add_field(btf(), "", either, 32, 0);
  btf__add_field(btf(), "low", u32, 64, 3);
  btf__add_field(btf(), "shift", s32, 67, 2);
  btf__add_field(btf(), "hue", color, 69, 2);
  EXPECT_EQ(read(whole, std::array<std::uint32_t, 3>{7, 0xffffffff, 0b10'11'101}),
            R"({"difference":-1,"first":7,"hue":"GREEN","low":5,"number":4294967295,"shift":-1})");
}

TEST_F(JsonValue, IsWhatWritesTheSame) {
  const std::uint32_t u64 = addInt("unsigned long", 8);
  const std::uint32_t s64 = addInt("long", 8, BTF_INT_SIGNED);
  const std::uint32_t pointer = id(btf__add_ptr(btf(), u64));
  const std::uint32_t text = addArray(addInt("char", 1, BTF_INT_SIGNED), 8);
  const std::uint32_t whole = id(btf__add_struct(btf(), "whole", 32));
  btf__add_field(btf(), "number", u64, 0, 0);
  btf__add_field(btf(), "pointer", pointer, 64, 0);
  btf__add_field(btf(), "text", text, 128, 0);
  btf__add_field(btf(), "low", u64, 192, 60);
  btf__add_field(btf(), "high", s64, 252, 4);
  const std::array<std::uint64_t, 4> memory{UINT64_MAX, 0xffff888012345678, 0x6f6c6c6548, 0x9123456789abcdef};
  std::array<std::uint64_t, 4> written{};
  EXPECT_EQ(write(whole, read(whole, memory), written), "");
  EXPECT_EQ(written, memory);
}

TEST_F(JsonValue, OfABrokenOrHostileTypeThereIsNothing) {
  const std::array<std::byte, 16> memory{};
  const std::uint32_t u32 = addInt("unsigned int", 4);
  EXPECT_EQ(read(0, memory), "nothing");
  EXPECT_EQ(read(4711, memory), "nothing");
  EXPECT_EQ(read(addArray(u32, 5), memory), "nothing") << "larger than the memory";
  EXPECT_EQ(read(addArray(id(btf__add_struct(btf(), "empty", 0)), 0xffffffff), memory), "nothing") << "no size, no end";
  EXPECT_EQ(read(id(btf__add_fwd(btf(), "forward", BTF_FWD_STRUCT)), memory), "nothing");
  const std::uint32_t outside = id(btf__add_struct(btf(), "outside", 4));
  btf__add_field(btf(), "member", u32, 128, 0);
  EXPECT_EQ(read(outside, memory), "nothing");
  // A struct whose member is itself, without a name: no end, and each step of the same size.
  const std::uint32_t endless = id(btf__add_struct(btf(), "endless", 16));
  btf__add_field(btf(), "", endless, 0, 0);
  btf__add_field(btf(), "again", endless, 0, 0);
  EXPECT_EQ(read(endless, memory), "nothing");
}

TEST_F(JsonValue, AWidelyBranchingTypeEnds) {
  // 16 structs, each of 8 of the next: 2^48 parts, of the same bytes.
  std::uint32_t inner = addInt("unsigned int", 4);
  for (int level = 0; level < 16; ++level) {
    const std::uint32_t next = id(btf__add_union(btf(), "", 4));
    for (int member = 0; member < 8; ++member) {
      btf__add_field(btf(), ("m" + std::to_string(member)).c_str(), inner, 0, 0);
    }
    inner = next;
  }
  EXPECT_EQ(read(inner, std::uint32_t{1}), "nothing");
}

} // namespace
} // namespace btfd::loader
