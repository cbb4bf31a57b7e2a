#include "btf/handle.h"
#include "btf/name_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

namespace btfd::btf {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::uint32_t> idsOf(const NameIndex& index, std::string_view name) {
  std::vector<std::uint32_t> ids;
  index.forEach(name, [&](std::uint32_t id) {
    ids.push_back(id);
    return true;
  });
  return ids;
}

/// What libbpf finds in `btf`, without its special cases.
std::optional<std::uint32_t> libbpfFinds(const struct ::btf& btf, const std::string& name, std::uint32_t kind) {
  const int id = btf__find_by_name_kind(&btf, name.c_str(), kind);
  return id > 0 ? std::optional(static_cast<std::uint32_t>(id)) : std::nullopt;
}

/// Types of all kinds that have names, with flavors, doubles, and unnamed ones among them.
BtfHandle makeMixedBtf() {
  BtfHandle btf(btf__new_empty());
  struct ::btf* raw = btf.get();
  btf__add_int(raw, "int", 4, BTF_INT_SIGNED);
  btf__add_struct(raw, "task", 8);
  btf__add_field(raw, "pid", 1, 0, 0);
  btf__add_ptr(raw, 2);
  btf__add_struct(raw, "task___v2", 8);
  btf__add_struct(raw, "task", 16); // a second of the same name and kind
  btf__add_union(raw, "task", 8);   // and one of another kind
  btf__add_struct(raw, nullptr, 4); // unnamed
  btf__add_enum(raw, "state", 4);
  btf__add_enum_value(raw, "RUNNING", 1);
  btf__add_enum64(raw, "state", 8, false);
  btf__add_enum64_value(raw, "LONG", 1ULL << 40U);
  btf__add_typedef(raw, "task", 2);
  btf__add_fwd(raw, "later", BTF_FWD_STRUCT);
  btf__add_func_proto(raw, 1);
  btf__add_func(raw, "run", BTF_FUNC_GLOBAL, 12);
  btf__add_float(raw, "double", 8);
  btf__add_var(raw, "counter", BTF_VAR_STATIC, 1);
  btf__add_datasec(raw, ".data", 4);
  btf__add_array(raw, 1, 1, 4);
  btf__add_const(raw, 1);
  btf__add_struct(raw, "task___v3", 8);
  return btf;
}

TEST(NameIndex, FindsWhatLibbpfFindsForEachNameAndKind) {
  const BtfHandle btf = makeMixedBtf();
  const NameIndex index(*btf, 1);
  for (const std::string name : {"int", "task", "task___v2", "task___v3", "task___v4", "state", "later", "run",
                                 "double", "counter", ".data", "pid", "RUNNING", "absent"}) {
    for (std::uint32_t kind = BTF_KIND_INT; kind <= BTF_KIND_ENUM64; ++kind) {
      EXPECT_EQ(index.find(name, kind), libbpfFinds(*btf, name, kind)) << name << " of kind " << kind;
    }
  }
}

TEST(NameIndex, GivesAllFlavorsOfANameInAscendingOrder) {
  const BtfHandle btf = makeMixedBtf();
  const NameIndex index(*btf, 1);
  std::vector<std::uint32_t> expected;
  for (std::uint32_t id = 1; id < btf__type_cnt(btf.get()); ++id) {
    const std::string name = btf__name_by_offset(btf.get(), btf__type_by_id(btf.get(), id)->name_off);
    if (essentialName(name) == "task") {
      expected.push_back(id);
    }
  }
  EXPECT_EQ(expected.size(), 6U);
  EXPECT_EQ(idsOf(index, "task"), expected);
}

TEST(NameIndex, ANameWithItsFlavorIsNoEssentialName) {
  const BtfHandle btf = makeMixedBtf();
  EXPECT_THAT(idsOf(NameIndex(*btf, 1), "task___v2"), IsEmpty());
}

TEST(NameIndex, StopsWhenTheVisitorHasEnough) {
  const BtfHandle btf = makeMixedBtf();
  int visited = 0;
  NameIndex(*btf, 1).forEach("task", [&](std::uint32_t) { return ++visited < 2; });
  EXPECT_EQ(visited, 2);
}

TEST(NameIndex, UnnamedTypesAreNotInIt) {
  const BtfHandle btf = makeMixedBtf();
  const NameIndex index(*btf, 1);
  EXPECT_THAT(idsOf(index, ""), IsEmpty());
  EXPECT_EQ(index.find("", BTF_KIND_STRUCT), std::nullopt);
  std::size_t named = 0;
  for (std::uint32_t id = 1; id < btf__type_cnt(btf.get()); ++id) {
    named += btf__type_by_id(btf.get(), id)->name_off != 0 ? 1U : 0U;
  }
  EXPECT_EQ(index.size(), named);
}

TEST(NameIndex, OfAnEmptyBtfFindsNothing) {
  const BtfHandle btf(btf__new_empty());
  const NameIndex index(*btf, 1);
  EXPECT_EQ(index.size(), 0U);
  EXPECT_EQ(index.find("int", BTF_KIND_INT), std::nullopt);
  EXPECT_THAT(idsOf(index, "int"), IsEmpty());
}

TEST(NameIndex, OfNothingFindsNothing) {
  const NameIndex index;
  EXPECT_EQ(index.size(), 0U);
  EXPECT_EQ(index.find("int", BTF_KIND_INT), std::nullopt);
}

TEST(NameIndex, OfASplitBtfHasOnlyWhatItAdds) {
  const BtfHandle base = makeMixedBtf();
  const std::uint32_t firstId = btf__type_cnt(base.get());
  const BtfHandle split(btf__new_empty_split(base.get()));
  const int added = btf__add_struct(split.get(), "driver", 8);
  btf__add_field(split.get(), "task", 2, 0, 0);
  const int again = btf__add_struct(split.get(), "task", 32);
  const NameIndex index(*split, firstId);
  EXPECT_EQ(index.size(), 2U);
  EXPECT_EQ(index.find("driver", BTF_KIND_STRUCT), static_cast<std::uint32_t>(added));
  EXPECT_EQ(index.find("int", BTF_KIND_INT), std::nullopt);
  EXPECT_THAT(idsOf(index, "task"), ElementsAre(static_cast<std::uint32_t>(again)));
  EXPECT_EQ(index.find("task", BTF_KIND_STRUCT), static_cast<std::uint32_t>(again));
}

TEST(NameIndex, PassesOverNamesThatNoKernelHas) {
  const BtfHandle btf(btf__new_empty());
  const std::string longest(511, 'x');
  btf__add_struct(btf.get(), longest.c_str(), 4);
  btf__add_struct(btf.get(), (longest + "y").c_str(), 4);
  const std::string endless(1U << 20U, 'z');
  for (int i = 0; i < 200'000; ++i) {
    btf__add_ptr(btf.get(), 0);
    const_cast<btf_type*>(btf__type_by_id(btf.get(), static_cast<__u32>(i) + 3))->name_off = // NOLINT
        i == 0 ? static_cast<__u32>(btf__add_str(btf.get(), endless.c_str())) : btf__type_by_id(btf.get(), 3)->name_off;
  }
  const NameIndex index(*btf, 1);
  EXPECT_EQ(index.size(), 1U);
  EXPECT_EQ(index.find(longest, BTF_KIND_STRUCT), 1U);
  EXPECT_EQ(index.find(longest + "y", BTF_KIND_STRUCT), std::nullopt);
}

TEST(NameIndex, KeepsManyNamesApart) {
  const BtfHandle btf(btf__new_empty());
  for (int i = 0; i < 5000; ++i) {
    btf__add_struct(btf.get(), ("s" + std::to_string(i)).c_str(), 4);
  }
  const NameIndex index(*btf, 1);
  for (std::uint32_t i = 0; i < 5000; ++i) {
    ASSERT_EQ(index.find("s" + std::to_string(i), BTF_KIND_STRUCT), i + 1);
  }
  EXPECT_EQ(index.find("s5000", BTF_KIND_STRUCT), std::nullopt);
  EXPECT_LE(index.bytes(), 5000 * 2 * sizeof(std::uint32_t));
}

} // namespace
} // namespace btfd::btf
