// .BTF.ext: its CO-RE records, and each way in which it can be corrupt.
#include "core/records.h"

#include <bpf/libbpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <span>

namespace btfd::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Bytes = std::vector<std::byte>;
using Words = std::vector<std::uint32_t>;

/// What is in a section but its header: function, line and CO-RE records, each as the words that the section has.
struct Parts {
  Words functions;
  Words lines;
  Words relocations;
};

constexpr std::uint32_t kHeader = 32;
// Offsets of the header's fields.
constexpr std::size_t kHeaderLength = 4;
constexpr std::size_t kFunctionOffset = 8;
constexpr std::size_t kLineOffset = 16;
constexpr std::size_t kRelocationOffset = 24;
constexpr std::size_t kRelocationLength = 28;

void put(Bytes& bytes, std::size_t at, std::uint32_t word) {
  std::memcpy(bytes.data() + at, &word, sizeof(word));
}

Bytes sectionOf(const Parts& parts) {
  const auto bytesOf = [](const Words& words) { return static_cast<std::uint32_t>(words.size() * 4); };
  Words words = {0x0001eb9f,
                 kHeader,
                 0,
                 bytesOf(parts.functions),
                 bytesOf(parts.functions),
                 bytesOf(parts.lines),
                 bytesOf(parts.functions) + bytesOf(parts.lines),
                 bytesOf(parts.relocations)};
  for (const Words* part : {&parts.functions, &parts.lines, &parts.relocations}) {
    words.insert(words.end(), part->begin(), part->end());
  }
  const auto bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.end()};
}

/// Two sections with records, function and line records before them.
Parts goodParts() {
  return {.functions = {8, 1, 1, 0, 3},
          .lines = {16, 1, 2, 0, 1, 2, 3, 8, 1, 2, 3},
          .relocations = {16, 11, 2, 0, 5, 21, 0, 8, 6, 22, 1, 12, 1, 16, 7, 23, 6}};
}

std::string errorOf(const Bytes& bytes) {
  const auto records = readRecords(bytes);
  return records ? "" : records.error().message;
}

std::string errorOf(const Parts& parts) {
  return errorOf(sectionOf(parts));
}

Bytes swapped(Bytes bytes) {
  for (std::size_t at = 4; at < bytes.size(); at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    put(bytes, at, __builtin_bswap32(word));
  }
  std::swap(bytes[0], bytes[1]);
  return bytes;
}

void expectGood(const Records& records) {
  EXPECT_THAT(records.sections, ElementsAre(11, 12));
  ASSERT_EQ(records.records.size(), 3U);
  const auto expect = [&](std::size_t index, const Record& expected) {
    const Record& record = records.records[index];
    EXPECT_EQ(record.section, expected.section);
    EXPECT_EQ(record.instructionOffset, expected.instructionOffset);
    EXPECT_EQ(record.type, expected.type);
    EXPECT_EQ(record.access, expected.access);
    EXPECT_EQ(record.kind, expected.kind);
  };
  expect(0, {.section = 0, .instructionOffset = 0, .type = 5, .access = 21, .kind = Kind::fieldByteOffset});
  expect(1, {.section = 0, .instructionOffset = 8, .type = 6, .access = 22, .kind = Kind::fieldByteSize});
  expect(2, {.section = 1, .instructionOffset = 16, .type = 7, .access = 23, .kind = Kind::typeIdLocal});
}

TEST(Records, AreReadSectionBySection) {
  const auto records = readRecords(sectionOf(goodParts()));
  ASSERT_TRUE(records) << records.error().message;
  EXPECT_FALSE(records->foreign);
  EXPECT_TRUE(records->needKernel());
  expectGood(*records);
}

TEST(Records, AreReadInTheOtherByteOrder) {
  const auto records = readRecords(swapped(sectionOf(goodParts())));
  ASSERT_TRUE(records) << records.error().message;
  EXPECT_TRUE(records->foreign);
  expectGood(*records);
}

TEST(Records, MayBeLongerThanTheirKnownFields) {
  Parts parts = goodParts();
  parts.relocations = {20, 11, 2, 0, 5, 21, 0, 99, 8, 6, 22, 1, 99, 12, 1, 16, 7, 23, 6, 99};
  const auto records = readRecords(sectionOf(parts));
  ASSERT_TRUE(records) << records.error().message;
  expectGood(*records);
}

TEST(Records, LocalIdsAloneNeedNoKernel) {
  Parts parts = goodParts();
  parts.relocations = {16, 11, 1, 0, 5, 21, 6};
  const auto records = readRecords(sectionOf(parts));
  ASSERT_TRUE(records);
  EXPECT_FALSE(records->needKernel());
}

TEST(Records, MayBeNone) {
  const auto none = readRecords(sectionOf({}));
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_THAT(none->records, IsEmpty());
  EXPECT_FALSE(none->needKernel());
  Parts parts = goodParts();
  parts.relocations = {};
  const auto noRelocations = readRecords(sectionOf(parts));
  ASSERT_TRUE(noRelocations) << noRelocations.error().message;
  EXPECT_THAT(noRelocations->records, IsEmpty());
}

TEST(Records, OldHeadersHaveNone) {
  Bytes bytes = sectionOf({.functions = goodParts().functions, .lines = {}, .relocations = {}});
  bytes.erase(bytes.begin() + 24, bytes.begin() + 32);
  put(bytes, kHeaderLength, 24);
  const auto records = readRecords(bytes);
  ASSERT_TRUE(records) << records.error().message;
  EXPECT_THAT(records->records, IsEmpty());
}

TEST(Records, NewerHeadersAreLonger) {
  Bytes bytes = sectionOf(goodParts());
  bytes.insert(bytes.begin() + kHeader, 8, std::byte{0});
  put(bytes, kHeaderLength, kHeader + 8);
  const auto records = readRecords(bytes);
  ASSERT_TRUE(records) << records.error().message;
  expectGood(*records);
}

TEST(Records, NoTruncationIsTaken) {
  const Bytes good = sectionOf(goodParts());
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_THAT(errorOf(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))), HasSubstr(".BTF.ext"))
        << size;
  }
}

TEST(Records, TheHeaderIsChecked) {
  Bytes bytes = sectionOf(goodParts());
  put(bytes, 0, 0x0001eb9e);
  EXPECT_THAT(errorOf(bytes), HasSubstr("magic number"));
  put(bytes, 0, 0x0002eb9f);
  EXPECT_THAT(errorOf(bytes), HasSubstr("version 2"));
  EXPECT_EQ(readRecords(bytes).error().code, ENOTSUP);
  put(bytes, 0, 0x0101eb9f);
  EXPECT_THAT(errorOf(bytes), HasSubstr("flags 1"));
  for (const std::uint32_t length : {0U, 4U, 23U, 0xffffffffU, static_cast<std::uint32_t>(bytes.size()) + 1}) {
    bytes = sectionOf(goodParts());
    put(bytes, kHeaderLength, length);
    EXPECT_THAT(errorOf(bytes), HasSubstr("its header says")) << length;
  }
}

TEST(Records, EachPartLiesWithinTheSection) {
  for (const std::size_t field : {kFunctionOffset, kLineOffset, kRelocationOffset}) {
    for (const std::uint32_t offset : {0xffffffffU, 0xfffffff0U, 0x80000000U, 0x1000U}) {
      Bytes bytes = sectionOf(goodParts());
      put(bytes, field, offset);
      EXPECT_THAT(errorOf(bytes), HasSubstr("lie outside it")) << field << " " << offset;
      bytes = sectionOf(goodParts());
      put(bytes, field + 4, offset); // its length
      EXPECT_THAT(errorOf(bytes), HasSubstr("lie outside it")) << field << " " << offset;
    }
    Bytes bytes = sectionOf(goodParts());
    bytes.resize(bytes.size() + 64);
    put(bytes, field, 2);
    EXPECT_THAT(errorOf(bytes), HasSubstr("not aligned")) << field;
  }
}

TEST(Records, EachPartIsChecked) {
  for (const bool ofLines : {false, true}) {
    Parts parts = goodParts();
    Words& words = ofLines ? parts.lines : parts.functions;
    for (const std::uint32_t size : {0U, 4U, 9U, 0x7fffffffU, 0xfffffffcU, 0xffffffffU}) {
      words[0] = size;
      EXPECT_NE(errorOf(parts), "") << size;
    }
    words = (ofLines ? goodParts().lines : goodParts().functions);
    for (const std::uint32_t count : {0U, 100U, 0x10000000U, 0x20000000U, 0xffffffffU}) {
      words[2] = count;
      EXPECT_THAT(errorOf(parts), HasSubstr("for one section")) << count;
    }
  }
}

TEST(Records, HaveTheSizeOfARecord) {
  Parts parts = goodParts();
  for (const std::uint32_t size : {0U, 1U, 12U, 15U, 17U, 0xffffffffU}) {
    parts.relocations[0] = size;
    EXPECT_THAT(errorOf(parts), HasSubstr("wrong size")) << size;
  }
  // Aligned, and so large that a count times it wraps around.
  for (const std::uint32_t size : {0x80000000U, 0xfffffffcU}) {
    parts.relocations[0] = size;
    EXPECT_THAT(errorOf(parts), HasSubstr("for one section")) << size;
  }
}

TEST(Records, FillTheirSection) {
  for (const std::uint32_t count : {0U, 3U, 4U, 0x10000001U, 0xffffffffU}) {
    Parts parts = goodParts();
    parts.relocations[2] = count;
    EXPECT_NE(errorOf(parts), "") << count;
  }
  Parts parts = goodParts();
  parts.relocations.push_back(13);
  EXPECT_THAT(errorOf(parts), HasSubstr("cut off"));
  parts.relocations.push_back(0);
  EXPECT_THAT(errorOf(parts), HasSubstr("are 0 for one section"));
  parts.relocations = {16};
  EXPECT_THAT(errorOf(parts), HasSubstr("cut off"));
  parts.relocations = {16, 11};
  EXPECT_THAT(errorOf(parts), HasSubstr("cut off"));
}

TEST(Records, AreAtMostAMillion) {
  Parts parts;
  constexpr std::uint32_t kRecords = (1U << 20U) + 1;
  parts.relocations = {16, 11, kRecords};
  parts.relocations.resize(3 + std::size_t{kRecords} * 4);
  const auto records = readRecords(sectionOf(parts));
  ASSERT_FALSE(records);
  EXPECT_EQ(records.error().code, E2BIG);
}

/// What is wrong for libbpf is wrong for us: it then ignores the whole section.
TEST(Records, NothingIsTakenThatLibbpfDoesNotTake) {
  libbpf_set_print(nullptr);
  const Bytes good = sectionOf(goodParts());
  int refused = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      Bytes bytes = good;
      bytes[at] ^= static_cast<std::byte>(1U << bit);
      btf_ext* theirs =
          btf_ext__new(reinterpret_cast<const __u8*>(bytes.data()), static_cast<__u32>(bytes.size())); // NOLINT
      if (theirs == nullptr) {
        EXPECT_NE(errorOf(bytes), "") << "byte " << at << ", bit " << bit;
        ++refused;
      }
      btf_ext__free(theirs);
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(Records, AreDroppedSoThatLibbpfFindsNone) {
  Bytes bytes = sectionOf(goodParts());
  dropRecords(bytes);
  const auto records = readRecords(bytes);
  ASSERT_TRUE(records) << records.error().message;
  EXPECT_THAT(records->records, IsEmpty());
  // Only that length changed.
  Bytes expected = sectionOf(goodParts());
  put(expected, kRelocationLength, 0);
  EXPECT_EQ(bytes, expected);
}

TEST(Records, OfAnOldHeaderNothingIsDropped) {
  Bytes bytes = sectionOf({.functions = {8, 1, 1, 0x01020304, 0x05060708}, .lines = {}, .relocations = {}});
  bytes.erase(bytes.begin() + 24, bytes.begin() + 32);
  put(bytes, kHeaderLength, 24);
  const Bytes before = bytes;
  dropRecords(bytes);
  EXPECT_EQ(bytes, before);
  Bytes tiny(10);
  dropRecords(tiny);
  EXPECT_EQ(tiny, Bytes(10));
}

} // namespace
} // namespace btfd::core
