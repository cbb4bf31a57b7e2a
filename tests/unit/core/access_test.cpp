// Access strings: what the object says it accesses.
#include "scenario.h"

#include <gmock/gmock.h>

#include <string>

namespace btfd::core {
namespace {

class AccessTest : public testing::Test {
 protected:
  AccessTest() {
    const TypeId integer = maker_.integer();
    const TypeId inner = maker_.structure("inner", {{"x", integer}, {"y", integer}});
    const TypeId anonymous = maker_.unionOf("", {{"u", integer}, {"v", inner}});
    const TypeId grid = maker_.array(maker_.array(integer, 4), 3);
    root_ = maker_.structure("root", {{"a", integer}, {"", anonymous}, {"in", inner}, {"grid", grid}});
    enum_ = maker_.enumeration("color", {{"RED", 1}, {"BLUE", 2}});
    integer_ = integer;
  }

  [[nodiscard]] Expected<LocalAccess> parse(const char* text, Kind kind = Kind::fieldByteOffset) const {
    return LocalAccess::parse(Types::ofObject(maker_.btf()), root_, kind, text);
  }

  [[nodiscard]] Fault faultOf(const char* text, Kind kind = Kind::fieldByteOffset) const {
    const auto access = parse(text, kind);
    return access ? Fault::none : access.error();
  }

  [[nodiscard]] std::uint64_t bitOffsetOf(const char* text) const {
    const auto access = parse(text);
    EXPECT_TRUE(access) << text;
    return access ? access->place().bitOffset : UINT64_MAX;
  }

  BtfMaker maker_;
  TypeId root_ = 0;
  TypeId enum_ = 0;
  TypeId integer_ = 0;
};

TEST_F(AccessTest, StepsAreTheNamedFieldsAndElements) {
  const auto access = parse("0:3:2:1");
  ASSERT_TRUE(access);
  ASSERT_EQ(access->accessors().size(), 4U);
  EXPECT_EQ(access->accessors()[0].name, nullptr);
  EXPECT_STREQ(access->accessors()[1].name, "grid");
  EXPECT_EQ(access->accessors()[2].name, nullptr);
  EXPECT_EQ(access->accessors()[2].index, 2U);
  EXPECT_EQ(access->accessors()[3].index, 1U);
  EXPECT_EQ(access->place().bitOffset, (4 + 8 + 8 + (2 * 4 + 1) * 4) * 8U);
}

TEST_F(AccessTest, AnonymousMembersAreNoSteps) {
  const auto access = parse("0:1:1:1");
  ASSERT_TRUE(access);
  ASSERT_EQ(access->accessors().size(), 3U);
  EXPECT_STREQ(access->accessors()[1].name, "v");
  EXPECT_STREQ(access->accessors()[2].name, "y");
  EXPECT_EQ(access->place().bitOffset, 64U);
}

TEST_F(AccessTest, TheFirstNumberIndexesThePointer) {
  const std::uint64_t size = (4 + 8 + 8 + 48) * 8U;
  EXPECT_EQ(bitOffsetOf("0"), 0U);
  EXPECT_EQ(bitOffsetOf("2"), 2 * size);
  EXPECT_EQ(bitOffsetOf("1:0"), size);
}

TEST_F(AccessTest, TypedefsAndModifiersAreSeenThrough) {
  root_ = maker_.definedAs("root_t", maker_.constant(maker_.isVolatile(root_)));
  EXPECT_EQ(bitOffsetOf("0:2:1"), (4 + 8 + 4) * 8U);
}

TEST_F(AccessTest, OnlyNumbersWithColonsBetweenThemAreAnAccess) {
  for (const char* text : {"",   ":",    "0:",  ":0",  "0::1", "0:1:", " 0",  "0 ",  "0: 1", "+0",     "-0",
                           "-1", "0:-1", "0x0", "0:a", "a",    "0.1",  "0,1", "\t0", "0\n",  "0:1\xff"}) {
    EXPECT_EQ(faultOf(text), Fault::accessMalformed) << '"' << text << '"';
  }
}

TEST_F(AccessTest, LargeNumbersAreOutOfRangeAndDoNotWrap) {
  EXPECT_EQ(faultOf("0:4"), Fault::accessOutOfRange);
  EXPECT_EQ(faultOf("0:2:2"), Fault::accessOutOfRange);
  for (const char* text : {"2147483648", "4294967296", "0:4294967296", "0:18446744073709551616",
                           "0:99999999999999999999999999999999999999999"}) {
    EXPECT_EQ(faultOf(text), Fault::accessOutOfRange) << text;
  }
}

TEST_F(AccessTest, NoNumberHasMoreDigitsThanOneThatIsInRange) {
  EXPECT_EQ(faultOf("0000000000"), Fault::none);
  EXPECT_EQ(faultOf(std::string(1000, '0').c_str()), Fault::accessOutOfRange);
}

TEST_F(AccessTest, OffsetsThatOverflowAreAnError) {
  EXPECT_EQ(faultOf("2147483647"), Fault::offsetOverflow);
  // 68 bytes times this is just below 2^32 bits, and just above.
  EXPECT_EQ(faultOf("7895160"), Fault::none);
  EXPECT_EQ(faultOf("7895161"), Fault::offsetOverflow);
}

TEST_F(AccessTest, ArrayIndexesLieWithinTheArray) {
  EXPECT_EQ(faultOf("0:3:2:3"), Fault::none);
  EXPECT_EQ(faultOf("0:3:3:0"), Fault::accessOutOfRange);
  EXPECT_EQ(faultOf("0:3:0:4"), Fault::accessOutOfRange);
}

TEST_F(AccessTest, AFlexibleArrayHasAnyIndex) {
  const TypeId none = maker_.array(integer_, 0);
  root_ = maker_.structure("flexible", {{"length", integer_}, {"data", none}});
  EXPECT_EQ(bitOffsetOf("0:1:100"), (4 + 400) * 8U);
  root_ = maker_.structure("not_last", {{"data", none}, {"length", integer_}});
  EXPECT_EQ(faultOf("0:0:0"), Fault::accessOutOfRange);
  // Only one dimension is flexible.
  root_ = maker_.structure("flexible2", {{"length", integer_}, {"data", maker_.array(none, 0)}});
  EXPECT_EQ(faultOf("0:1:5:0"), Fault::accessOutOfRange);
}

TEST_F(AccessTest, ScalarsHaveNoFields) {
  EXPECT_EQ(faultOf("0:0:0"), Fault::accessIntoScalar);
  root_ = maker_.pointer(root_);
  EXPECT_EQ(faultOf("0:0"), Fault::accessIntoScalar);
}

TEST_F(AccessTest, AnAccessHasAtMost64Steps) {
  TypeId type = integer_;
  for (int level = 0; level < 70; ++level) {
    type = maker_.array(type, 1);
  }
  root_ = type;
  std::string text = "0";
  for (int step = 1; step < 64; ++step) {
    text += ":0";
  }
  EXPECT_EQ(faultOf(text.c_str()), Fault::none);
  text += ":0";
  EXPECT_EQ(faultOf(text.c_str()), Fault::accessTooLong);
}

TEST_F(AccessTest, TypesAreAccessedAsAWhole) {
  for (const Kind kind : {Kind::typeIdLocal, Kind::typeIdTarget, Kind::typeExists, Kind::typeSize, Kind::typeMatches}) {
    EXPECT_EQ(faultOf("0", kind), Fault::none);
    for (const char* text : {"", "1", "0:0", "00", " 0"}) {
      EXPECT_EQ(faultOf(text, kind), Fault::accessNotZero) << text;
    }
  }
}

TEST_F(AccessTest, EnumeratorsAreOfEnums) {
  for (const Kind kind : {Kind::enumeratorExists, Kind::enumeratorValue}) {
    EXPECT_EQ(faultOf("0", kind), Fault::notAnEnum);
  }
  root_ = maker_.definedAs("color_t", enum_);
  for (const Kind kind : {Kind::enumeratorExists, Kind::enumeratorValue}) {
    const auto access = parse("1", kind);
    ASSERT_TRUE(access);
    EXPECT_STREQ(access->accessors().front().name, "BLUE");
    EXPECT_EQ(faultOf("2", kind), Fault::accessOutOfRange);
    EXPECT_EQ(faultOf("0:0", kind), Fault::accessOutOfRange);
    EXPECT_EQ(faultOf("-1", kind), Fault::accessMalformed);
  }
}

TEST_F(AccessTest, KindsBeyondThe13AreUnknown) {
  for (const std::uint32_t kind : {13U, 14U, 0x7fffffffU, 0xffffffffU}) {
    EXPECT_EQ(faultOf("0", static_cast<Kind>(kind)), Fault::unknownKind) << kind;
  }
}

TEST_F(AccessTest, TypesWithoutSizeHaveNoOffsets) {
  root_ = maker_.forward("elsewhere");
  EXPECT_EQ(faultOf("0"), Fault::sizeUnknown);
  root_ = 0; // void
  EXPECT_EQ(faultOf("0"), Fault::sizeUnknown);
  root_ = 100000;
  EXPECT_EQ(faultOf("0"), Fault::unknownType);
}

} // namespace
} // namespace btfd::core
