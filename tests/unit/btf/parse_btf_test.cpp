// BTF in the format of Linux 7.1: a longer header with a layout section, kinds of 7 bits, counts of 24.
#include "btf/parse_btf.h"
#include "test_support/btf_maker.h"

#include <bpf/libbpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cerrno>
#include <cstring>

namespace btfd::btf {
namespace {

using test_support::BtfMaker;
using testing::HasSubstr;

using Bytes = std::vector<std::byte>;
using Words = std::vector<std::uint32_t>;

constexpr std::uint32_t kUnknownKind = 20;
constexpr std::uint32_t kUnknownKindOf7Bits = 100;

std::uint32_t information(std::uint32_t kind, std::uint32_t elements) {
  return kind << 24U | elements;
}

/// Raw BTF put together word by word.
struct RawBtf {
  Words types;
  std::string strings = std::string("\0int\0s\0", 7);
  /// In its fixed part and for each element, by kind.
  std::vector<KindLayout> layouts;
  bool isLong = true;
  bool isForeign = false;

  void integer() { add({1, information(BTF_KIND_INT, 0), 4, BTF_INT_SIGNED << 24U | 32U}); }

  void structure(std::uint32_t members) {
    add({5, information(BTF_KIND_STRUCT, members), 4});
    for (std::uint32_t i = 0; i < members; ++i) {
      add({1, 1, 0});
    }
  }

  void unknown(std::uint32_t kind, std::uint32_t elements, std::size_t words) {
    add({0, information(kind, elements), 0});
    types.resize(types.size() + words, 0xffffffffU);
  }

  /// As all kernels have it that write the section: for each kind that they know.
  void tellLayouts(std::uint32_t kinds, KindLayout unknown) {
    layouts.assign(kinds, {});
    layouts[kUnknownKind] = unknown;
    layouts.back() = unknown;
  }

  [[nodiscard]] Bytes bytes() const {
    const auto typeBytes = static_cast<std::uint32_t>(types.size() * sizeof(std::uint32_t));
    const auto layoutBytes = static_cast<std::uint32_t>(layouts.size() * 4);
    const auto stringBytes = static_cast<std::uint32_t>(strings.size());
    Words header = {
        isForeign ? 0x00019febU : 0x0001eb9fU, isLong ? 32U : 24U, 0, typeBytes, typeBytes + layoutBytes, stringBytes};
    if (isLong) {
      header.insert(header.end(), {typeBytes, layoutBytes});
    }
    Bytes result;
    for (std::size_t i = 0; i < header.size(); ++i) {
      append(result, i == 0 || !isForeign ? header[i] : std::byteswap(header[i]));
    }
    for (const std::uint32_t word : types) {
      append(result, isForeign ? std::byteswap(word) : word);
    }
    for (const KindLayout& layout : layouts) {
      result.insert(result.end(), {std::byte{layout.fixed}, std::byte{layout.element}, std::byte{0}, std::byte{0}});
    }
    const auto text = std::as_bytes(std::span(strings));
    result.insert(result.end(), text.begin(), text.end());
    return result;
  }

 private:
  void add(std::initializer_list<std::uint32_t> words) { types.insert(types.end(), words); }

  static void append(Bytes& bytes, std::uint32_t word) {
    const auto added = std::as_bytes(std::span(&word, 1));
    bytes.insert(bytes.end(), added.begin(), added.end());
  }
};

class ParseBtfTest : public testing::TestWithParam<bool> {
 protected:
  ParseBtfTest() { libbpf_set_print(nullptr); }

  /// An int, whatever `inBetween` adds, and a struct.
  template <typename Add>
  static RawBtf made(Add&& inBetween) {
    RawBtf raw;
    raw.isForeign = GetParam();
    raw.integer();
    inBetween(raw);
    raw.structure(1);
    return raw;
  }

  static std::string errorOf(const Bytes& bytes) {
    const auto parsed = parseBtf(bytes);
    return parsed ? "" : parsed.error().message;
  }

  static void expectStruct(const Result<ParsedBtf>& parsed, std::uint32_t id) {
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(btf__type_cnt(parsed->btf.get()), id + 1);
    EXPECT_EQ(btf__find_by_name_kind(parsed->btf.get(), "s", BTF_KIND_STRUCT), static_cast<int>(id));
    EXPECT_EQ(btf__resolve_size(parsed->btf.get(), id), 4);
    EXPECT_EQ(btf__endianness(parsed->btf.get()),
              (std::endian::native == std::endian::little) != GetParam() ? BTF_LITTLE_ENDIAN : BTF_BIG_ENDIAN);
  }
};

TEST_P(ParseBtfTest, AHeaderOfEitherLengthIsTaken) {
  for (const bool isLong : {false, true}) {
    RawBtf raw = made([](RawBtf&) {});
    raw.isLong = isLong;
    expectStruct(parseBtf(raw.bytes()), 2);
  }
}

TEST_P(ParseBtfTest, ALayoutSectionThatIsNotNeededIsPassedOver) {
  RawBtf raw = made([](RawBtf&) {});
  raw.tellLayouts(21, {.fixed = 4, .element = 8});
  expectStruct(parseBtf(raw.bytes()), 2);
}

TEST_P(ParseBtfTest, AnUnknownKindIsSkippedAsTheLayoutSaysAndKeepsItsId) {
  for (const std::uint32_t kind : {kUnknownKind, kUnknownKindOf7Bits}) {
    RawBtf raw = made([&](RawBtf& types) {
      types.unknown(kind, 3, 1 + 3 * 2);
      types.unknown(kind, 0, 1);
    });
    raw.tellLayouts(kind + 1, {.fixed = 4, .element = 8});
    const auto parsed = parseBtf(raw.bytes());
    expectStruct(parsed, 4);
    for (const std::uint32_t id : {2U, 3U}) {
      const btf_type* type = btf__type_by_id(parsed->btf.get(), id);
      EXPECT_EQ(type->name_off, 0U);
      EXPECT_LT(btf__resolve_size(parsed->btf.get(), id), 0) << "nothing is known of it";
    }
  }
}

TEST_P(ParseBtfTest, AnUnknownKindMayHaveMoreElementsThan16BitsHold) {
  RawBtf raw = made([](RawBtf& types) { types.unknown(kUnknownKind, 70000, 70000); });
  raw.tellLayouts(kUnknownKind + 1, {.fixed = 0, .element = 4});
  expectStruct(parseBtf(raw.bytes()), 3);
}

TEST_P(ParseBtfTest, AnUnknownKindWithoutLayoutIsNamed) {
  RawBtf raw = made([](RawBtf& types) { types.unknown(kUnknownKind, 0, 0); });
  for (const bool isLong : {false, true}) {
    raw.isLong = isLong;
    EXPECT_THAT(errorOf(raw.bytes()), HasSubstr("type number 2 is of kind 20"));
    EXPECT_EQ(parseBtf(raw.bytes()).error().code, ENOTSUP);
  }
  raw.layouts.assign(kUnknownKind, {});
  EXPECT_THAT(errorOf(raw.bytes()), HasSubstr("does not say how to skip it"));
}

TEST_P(ParseBtfTest, ASectionOfMoreVariablesThan16BitsHoldIsSkipped) {
  RawBtf raw = made([](RawBtf& types) {
    types.unknown(BTF_KIND_DATASEC, 70000, 0);
    for (std::uint32_t i = 0; i < 70000; ++i) {
      types.types.insert(types.types.end(), {1, 0, 4});
    }
  });
  expectStruct(parseBtf(raw.bytes()), 3);
}

TEST_P(ParseBtfTest, AStructOfMoreMembersThan16BitsHoldIsReadOrRefusedButNotMisunderstood) {
  RawBtf raw;
  raw.isForeign = GetParam();
  raw.integer();
  raw.structure(70000);
  const auto parsed = parseBtf(raw.bytes());
  if (parsed) { // by libbpf 1.8
    EXPECT_EQ(btf_vlen(btf__type_by_id(parsed->btf.get(), 2)), 70000U);
  } else {
    EXPECT_THAT(parsed.error().message, HasSubstr("70000 members"));
  }
}

TEST_P(ParseBtfTest, WhatIsCutOffIsAnError) {
  RawBtf raw = made([](RawBtf& types) { types.unknown(kUnknownKind, 2, 1 + 2 * 2); });
  raw.tellLayouts(kUnknownKind + 1, {.fixed = 4, .element = 8});
  const Bytes whole = raw.bytes();
  EXPECT_EQ(errorOf(whole), "");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    ASSERT_NE(errorOf(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))), "") << size;
  }
}

TEST_P(ParseBtfTest, ALayoutThatLeadsOutOfTheTypesIsAnError) {
  RawBtf raw = made([](RawBtf& types) { types.unknown(kUnknownKind, 2, 1); });
  for (const KindLayout layout : {KindLayout{.fixed = 255, .element = 0},
                                  {.fixed = 0, .element = 255},
                                  {.fixed = 3, .element = 0},
                                  {.fixed = 4, .element = 9}}) {
    raw.tellLayouts(kUnknownKind + 1, layout);
    EXPECT_THAT(errorOf(raw.bytes()), HasSubstr("damaged"));
  }
}

TEST_P(ParseBtfTest, AModuleMayLeaveLayoutsToItsKernel) {
  RawBtf kernel = made([](RawBtf&) {});
  kernel.tellLayouts(kUnknownKind + 1, {.fixed = 4, .element = 8});
  auto parsed = parseBtf(kernel.bytes());
  ASSERT_TRUE(parsed) << parsed.error().message;

  RawBtf module;
  module.isForeign = GetParam();
  module.strings = std::string("driver\0", 7);
  module.types = {7, information(BTF_KIND_STRUCT, 0), 8};
  module.unknown(kUnknownKind, 1, 1 + 2);
  module.types.insert(module.types.end(), {7, information(BTF_KIND_STRUCT, 0), 16});
  EXPECT_FALSE(parseBtf(module.bytes(), parsed->btf.get()));
  const auto split = parseBtf(module.bytes(), parsed->btf.get(), parsed->layouts);
  ASSERT_TRUE(split) << split.error().message;
  EXPECT_EQ(btf__type_cnt(split->btf.get()), 6U);
  EXPECT_EQ(btf__resolve_size(split->btf.get(), 5), 16);
}

INSTANTIATE_TEST_SUITE_P(ByteOrders, ParseBtfTest, testing::Bool(),
                         [](const auto& each) { return each.param ? "foreign" : "native"; });

TEST(ParseBtf, BtfOfTodayIsReadInPlace) {
  BtfMaker maker;
  maker.structure("s", {{"f", maker.integer()}});
  for (const auto order : {BTF_LITTLE_ENDIAN, BTF_BIG_ENDIAN}) {
    ASSERT_EQ(btf__set_endianness(maker.get(), order), 0);
    KindLayouts layouts;
    const auto readable = readableBtf(maker.bytes(), layouts);
    ASSERT_TRUE(readable) << readable.error().message;
    EXPECT_FALSE(*readable);
  }
}

} // namespace
} // namespace btfd::btf
