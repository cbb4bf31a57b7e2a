// The cases of the kernel's own tests of CO-RE (tools/testing/selftests/bpf/prog_tests/core_reloc.c), rebuilt: the same
// shapes of types, good and bad, and what is demanded of them.
#include "scenario.h"

#include <functional>

namespace btfd::core {
namespace {

using Make = std::function<TypeId(BtfMaker&)>;

constexpr Kind kOffset = Kind::fieldByteOffset;
constexpr std::int64_t kPoisoned = -1;
constexpr std::int64_t kFailed = -2;

/// A field that is asked for, and where it is in the object.
struct Field {
  const char* access;
  std::int32_t local;
  Kind kind = kOffset;
};

/// What becomes of `fields` of the object's type in a kernel: values, kPoisoned or kFailed.
std::vector<std::int64_t> relocate(const Make& ours, const Make& theirs, const std::vector<Field>& fields) {
  Scenario scenario;
  const TypeId root = ours(scenario.object);
  theirs(scenario.kernel);
  std::vector<Question> questions;
  for (const Field& each : fields) {
    questions.push_back({.kind = each.kind, .type = root, .access = each.access, .code = {move(each.local)}});
  }
  std::vector<std::int64_t> answers;
  for (const Relocated& each : scenario.relocateAll(questions)) {
    answers.push_back(each.outcome() == Outcome::resolved   ? static_cast<std::int64_t>(each.value())
                      : each.outcome() == Outcome::poisoned ? kPoisoned
                                                            : kFailed);
  }
  return answers;
}

using Answers = std::vector<std::int64_t>;

// ---- flavors: one kernel type, three views of it ------------------------------------------------------------------

TEST(KernelMatrix, Flavors) {
  Scenario scenario;
  const TypeId ours = scenario.object.integer();
  const TypeId plain = scenario.object.structure("core_reloc_flavors", {{"a", ours}, {"b", ours}, {"c", ours}});
  const TypeId reversed =
      scenario.object.structure("core_reloc_flavors___reversed", {{"c", ours}, {"b", ours}, {"a", ours}});
  const TypeId unioned =
      scenario.object.structure("core_reloc_flavors___weird", {{"", scenario.object.structure("", {{"b", ours}})},
                                                               {"a", ours},
                                                               {"", scenario.object.unionOf("", {{"c", ours}})}});
  const TypeId theirs = scenario.kernel.integer();
  scenario.kernel.structure("core_reloc_flavors", {{"a", theirs}, {"b", theirs}, {"c", theirs}});
  expectResolved(scenario.ask(kOffset, plain, "0:2", 8), 8);
  expectResolved(scenario.ask(kOffset, reversed, "0:0", 0), 8);
  expectResolved(scenario.ask(kOffset, reversed, "0:2", 8), 0);
  expectResolved(scenario.ask(kOffset, unioned, "0:0:0", 0), 4);
  expectResolved(scenario.ask(kOffset, unioned, "0:2:0", 8), 8);
}

TEST(KernelMatrix, FlavorsOfAnotherNameAreMissing) {
  Scenario scenario;
  const TypeId root = scenario.object.structure("core_reloc_flavors", {{"a", scenario.object.integer()}});
  scenario.kernel.structure("core_reloc_flavors__err_wrong_name", {{"a", scenario.kernel.integer()}});
  expectPoisoned(scenario.ask(kOffset, root, "0:0", 0), Fault::noCandidate);
}

// ---- nesting: s->a.a.a and s->b.b.b ---------------------------------------------------------------------------------

/// struct { union { struct { int a; } a; } a; union { struct { int b; } b; } b; }
TypeId nesting(BtfMaker& maker) {
  const TypeId integer = maker.integer();
  const auto member = [&](const char* name) {
    return maker.unionOf("", {{name, maker.structure("", {{name, integer}})}});
  };
  return maker.structure("core_reloc_nesting", {{"a", member("a")}, {"b", member("b")}});
}

const std::vector<Field> kNesting = {{"0:0:0:0", 0}, {"0:1:0:0", 4}};

struct Nesting {
  const char* name;
  Make theirs;
  Answers expected;
};

void PrintTo(const Nesting& nesting, std::ostream* out) { // NOLINT: googletest's name
  *out << nesting.name;
}

class NestingTest : public testing::TestWithParam<Nesting> {};

TEST_P(NestingTest, HasItsAnswer) {
  EXPECT_EQ(relocate(nesting, GetParam().theirs, kNesting), GetParam().expected);
}

/// Makes the kernel's struct of what `members` gives for an int.
Make withMembers(std::function<std::vector<Member>(BtfMaker&, TypeId)> members,
                 const char* name = "core_reloc_nesting") {
  return [members = std::move(members), name](BtfMaker& maker) {
    const TypeId integer = maker.integer();
    const auto made = members(maker, integer);
    return maker.structure(name, made);
  };
}

/// struct { struct { int NAME; } NAME; }, with `before` other members in the innermost.
TypeId inner(BtfMaker& maker, const char* name, TypeId type, int before = 0) {
  std::vector<Member> members;
  for (int i = 0; i < before; ++i) {
    members.push_back({"x", type});
  }
  members.push_back({name, type});
  return maker.structure("", {{name, maker.structure("", members)}});
}

const std::vector<Nesting> kNestings = {
    {"same", nesting, {0, 4}},
    {"anon_embed",
     withMembers([](BtfMaker& maker, TypeId integer) {
       const TypeId embedded = maker.structure("", {{"x", integer}, {"a", inner(maker, "a", integer)}});
       return std::vector<Member>{{"", embedded}, {"b", inner(maker, "b", integer)}};
     }),
     {4, 8}},
    {"struct_union_mixup",
     withMembers([](BtfMaker& maker, TypeId integer) {
       const TypeId a =
           maker.structure("", {{"x", integer}, {"a", maker.unionOf("", {{"a", integer}, {"z", integer}})}});
       const TypeId b = maker.unionOf("", {{"b", maker.structure("", {{"x", integer}, {"b", integer}})}});
       return std::vector<Member>{{"a", a}, {"b", b}};
     }),
     {4, 12}},
    {"extra_nesting",
     withMembers([](BtfMaker& maker, TypeId integer) {
       TypeId a = inner(maker, "a", integer);
       a = maker.structure("", {{"", maker.structure("", {{"x", integer}, {"", maker.unionOf("", {{"a", a}})}})}});
       const TypeId b = inner(maker, "b", integer);
       return std::vector<Member>{{"", maker.unionOf("", {{"", a}})},
                                  {"", maker.structure("", {{"", maker.structure("", {{"b", b}})}})}};
     }),
     {4, 8}},
    {"dup_compat_types",
     // Two structs of one name; either has the field at the same place.
     [](BtfMaker& maker) {
       nesting(maker);
       const TypeId integer = maker.integer("long", 8);
       return maker.structure("core_reloc_nesting___2",
                              {{"a", inner(maker, "a", integer), 0, 0}, {"b", inner(maker, "b", integer), 0, 32}}, 16);
     },
     {0, 4}},
    {"typedefs",
     withMembers([](BtfMaker& maker, TypeId integer) {
       const TypeId t = maker.definedAs("int_t", maker.constant(maker.definedAs("int_u", integer)));
       const TypeId a = maker.definedAs("a_t", maker.isVolatile(inner(maker, "a", t, 1)));
       return std::vector<Member>{{"a", a}, {"b", maker.definedAs("b_t", inner(maker, "b", t))}};
     }),
     {4, 8}},
    {"missing_field",
     withMembers([](BtfMaker& maker, TypeId integer) {
       return std::vector<Member>{{"a", maker.structure("", {{"a", maker.structure("", {{"z", integer}})}})},
                                  {"b", inner(maker, "b", integer)}};
     }),
     {kPoisoned, 4}},
    {"missing_container",
     withMembers([](BtfMaker& maker, TypeId integer) {
       return std::vector<Member>{{"z", inner(maker, "a", integer)}, {"b", inner(maker, "b", integer)}};
     }),
     {kPoisoned, 4}},
    {"nonstruct_container",
     withMembers([](BtfMaker& maker, TypeId integer) {
       return std::vector<Member>{{"a", maker.structure("", {{"a", integer}})}, {"b", inner(maker, "b", integer)}};
     }),
     {kPoisoned, 4}},
    {"array_container",
     withMembers([](BtfMaker& maker, TypeId integer) {
       const TypeId a = maker.structure("", {{"a", maker.array(maker.structure("", {{"a", integer}}), 1)}});
       return std::vector<Member>{{"a", a}, {"b", inner(maker, "b", integer)}};
     }),
     {kPoisoned, 4}},
    {"array_field",
     withMembers([](BtfMaker& maker, TypeId integer) {
       return std::vector<Member>{{"a", inner(maker, "a", maker.array(integer, 1))}, {"b", inner(maker, "b", integer)}};
     }),
     {kPoisoned, 4}},
    {"too_deep",
     // More levels than BPF_CORE_SPEC_MAX_LEN.
     withMembers([](BtfMaker& maker, TypeId integer) {
       TypeId a = maker.structure("", {{"a", inner(maker, "a", integer)}});
       for (int level = 0; level < 64; ++level) {
         a = maker.structure("", {{"", a}});
       }
       return std::vector<Member>{{"b", inner(maker, "b", integer)}, {"", a}};
     }),
     {kFailed, 0}},
    {"dup_incompat_types",
     [](BtfMaker& maker) {
       nesting(maker);
       const TypeId integer = maker.integer();
       return maker.structure("core_reloc_nesting",
                              {{"b", inner(maker, "b", integer)}, {"a", inner(maker, "a", integer)}});
     },
     {kFailed, kFailed}},
    {"partial_match_dups",
     // Each has one of the two.
     [](BtfMaker& maker) {
       const TypeId integer = maker.integer();
       maker.structure("core_reloc_nesting", {{"a", inner(maker, "a", integer)}});
       return maker.structure("core_reloc_nesting", {{"b", inner(maker, "b", integer)}});
     },
     {kFailed, kFailed}},
    {"missing_type",
     withMembers([](BtfMaker&, TypeId integer) { return std::vector<Member>{{"a", integer}}; }, "other"),
     {kPoisoned, kPoisoned}},
};

INSTANTIATE_TEST_SUITE_P(KernelMatrix, NestingTest, testing::ValuesIn(kNestings),
                         [](const auto& test) { return std::string(test.param.name); });

// ---- arrays: a[2], b[1][2][3], c[1].c, d[0][0].d, f[1][0].c
// -----------------------------------------------------------

struct Dimensions {
  std::uint32_t a = 5;
  std::array<std::uint32_t, 3> b = {2, 3, 4};
  std::uint32_t c = 3;
  std::array<std::uint32_t, 2> d = {1, 2};
};

Make arrays(const Dimensions& dimensions, std::uint32_t before = 0, bool flexibleLast = false) {
  return [=](BtfMaker& maker) {
    const TypeId integer = maker.integer();
    const TypeId character = maker.integer("char", 1);
    const TypeId substruct = maker.structure("core_reloc_arrays_substruct", {{"c", integer}, {"d", integer}});
    const TypeId b =
        maker.array(maker.array(maker.array(character, dimensions.b[2]), dimensions.b[1]), dimensions.b[0]);
    const TypeId d = maker.array(maker.array(substruct, dimensions.d[1]), dimensions.d[0]);
    std::vector<Member> members;
    if (before != 0) {
      members.push_back({"before", maker.array(integer, before)});
    }
    members.insert(members.end(), {{"b", b}, {"c", maker.array(substruct, dimensions.c)}, {"d", d}});
    const Member a{"a", maker.array(integer, dimensions.a)};
    members.insert(flexibleLast ? members.end() : members.begin() + (before != 0 ? 1 : 0), a);
    return maker.structure("core_reloc_arrays", members);
  };
}

const std::vector<Field> kArrays = {
    {"0:0:2", 8}, {"0:1:1:2:3", 20 + 23}, {"0:2:1:0", 44 + 8}, {"0:3:0:0:1", 44 + 24 + 4}};

TEST(KernelMatrix, Arrays) {
  EXPECT_EQ(relocate(arrays({}), arrays({}), kArrays), (Answers{8, 43, 52, 72}));
  EXPECT_EQ(relocate(arrays({}), arrays({}, 3), kArrays), (Answers{20, 55, 64, 84}));
  // More dimensions' room than the object thinks.
  EXPECT_EQ(relocate(arrays({}), arrays({.a = 6, .b = {3, 4, 5}, .c = 4, .d = {2, 3}}), kArrays),
            (Answers{8, 24 + 20 + 10 + 3, 24 + 60 + 8, 24 + 60 + 32 + 4}));
  // As few as it needs.
  EXPECT_EQ(relocate(arrays({}), arrays({.a = 3, .b = {2, 3, 4}, .c = 2, .d = {1, 1}}), kArrays),
            (Answers{8, 12 + 23, 36 + 8, 36 + 16 + 4}));
}

TEST(KernelMatrix, ArraysThatAreTooSmall) {
  EXPECT_EQ(relocate(arrays({}), arrays({.a = 2}), kArrays)[0], kPoisoned);
  EXPECT_EQ(relocate(arrays({}), arrays({.b = {1, 3, 4}}), kArrays)[1], kPoisoned);
  EXPECT_EQ(relocate(arrays({}), arrays({.b = {2, 2, 4}}), kArrays)[1], kPoisoned);
  EXPECT_EQ(relocate(arrays({}), arrays({.b = {2, 3, 3}}), kArrays)[1], kPoisoned);
  EXPECT_EQ(relocate(arrays({}), arrays({.c = 1}), kArrays)[2], kPoisoned);
  EXPECT_EQ(relocate(arrays({}), arrays({.d = {0, 1}}), kArrays)[3], 72 - 0 - 0);
}

TEST(KernelMatrix, ArraysOfNoLengthAreFlexibleAtTheEndOnly) {
  EXPECT_EQ(relocate(arrays({}), arrays({.a = 0}, 0, true), kArrays)[0], 24 + 24 + 16 + 8);
  EXPECT_EQ(relocate(arrays({}), arrays({.a = 0}), kArrays)[0], kPoisoned);
}

TEST(KernelMatrix, ArraysOfNonArraysAndBack) {
  const Make scalar =
      withMembers([](BtfMaker&, TypeId integer) { return std::vector<Member>{{"a", integer}}; }, "core_reloc_arrays");
  EXPECT_EQ(relocate(arrays({}), scalar, {kArrays[0]}), Answers{kPoisoned});
  const Make pointers = [](BtfMaker& maker) {
    return maker.structure("core_reloc_arrays", {{"a", maker.array(maker.pointer(), 5)}});
  };
  EXPECT_EQ(relocate(arrays({}), pointers, {kArrays[0]}), Answers{kPoisoned});
}

// ---- primitives
// ------------------------------------------------------------------------------------------------------

Make primitives(const std::function<void(BtfMaker&, std::vector<Member>&)>& change) {
  return [change](BtfMaker& maker) {
    std::vector<Member> members = {{"a", maker.integer("char", 1)},
                                   {"b", maker.integer()},
                                   {"c", maker.enumeration("core_reloc_primitives_enum", {{"A", 0}, {"B", 1}})},
                                   {"d", maker.pointer()},
                                   {"f", maker.pointer(maker.prototype(maker.integer(), {{"", maker.pointer()}}))}};
    change(maker, members);
    return maker.structure("core_reloc_primitives", members);
  };
}

const std::vector<Field> kPrimitives = {{"0:0", 0}, {"0:1", 4}, {"0:2", 8}, {"0:3", 16}, {"0:4", 24}};

TEST(KernelMatrix, Primitives) {
  const Make same = primitives([](BtfMaker&, auto&) {});
  const auto with = [&](std::size_t at, auto&& make) {
    return relocate(same,
                    primitives([&](BtfMaker& maker, std::vector<Member>& members) { members[at].type = make(maker); }),
                    kPrimitives)[at];
  };
  EXPECT_EQ(relocate(same, same, kPrimitives), (Answers{0, 4, 8, 16, 24}));
  // diff_enum_def: an enum of the name with other values.
  EXPECT_EQ(with(2, [](BtfMaker& maker) { return maker.enumeration("core_reloc_primitives_enum", {{"X", 100}}); }), 8);
  // diff_func_proto, diff_ptr_type
  EXPECT_EQ(with(4, [](BtfMaker& maker) { return maker.pointer(maker.prototype(0, {})); }), 24);
  EXPECT_EQ(with(3, [](BtfMaker& maker) { return maker.pointer(maker.constant(maker.integer("char", 1))); }), 16);
  // err_non_enum, err_non_int, err_non_ptr
  EXPECT_EQ(with(2, [](BtfMaker& maker) { return maker.integer(); }), kPoisoned);
  EXPECT_EQ(with(1, [](BtfMaker& maker) { return maker.pointer(); }), kPoisoned);
  EXPECT_EQ(with(3, [](BtfMaker& maker) { return maker.integer("long", 8); }), kPoisoned);
}

// ---- mods: typedefs and modifiers on the way
// ---------------------------------------------------------------------------

TEST(KernelMatrix, Modifiers) {
  const auto make = [](bool swapped) -> Make {
    return [swapped](BtfMaker& maker) {
      const TypeId integer = maker.definedAs("int_t", maker.constant(maker.integer()));
      const TypeId pointer = maker.definedAs("char_ptr_t", maker.pointer(maker.integer("char", 1)));
      const TypeId array = maker.definedAs("arr_t", maker.array(integer, 7));
      const TypeId substruct =
          maker.definedAs("core_reloc_mods_substruct_t", maker.structure("", {{"x", integer}, {"y", integer}}));
      std::vector<Member> members = {{"a", integer}, {"b", pointer}, {"c", maker.isVolatile(array)}, {"d", substruct}};
      if (swapped) {
        std::ranges::reverse(members);
      }
      return maker.structure("core_reloc_mods", members);
    };
  };
  const std::vector<Field> fields = {{"0:0", 0}, {"0:1", 8}, {"0:2:6", 16 + 24}, {"0:3:1", 44 + 4}};
  EXPECT_EQ(relocate(make(false), make(true), fields), (Answers{48, 40, 8 + 24, 4}));
}

// ---- ptr_as_arr: p[2].a
// ----------------------------------------------------------------------------------------------

TEST(KernelMatrix, PointersAsArrays) {
  const Make ours = withMembers([](BtfMaker&, TypeId integer) { return std::vector<Member>{{"a", integer}}; },
                                "core_reloc_ptr_as_arr");
  const Make larger = withMembers(
      [](BtfMaker& maker, TypeId integer) {
        return std::vector<Member>{{"", maker.structure("", {{"x", integer}, {"y", integer}})}, {"a", integer}};
      },
      "core_reloc_ptr_as_arr");
  EXPECT_EQ(relocate(ours, ours, {{"2:0", 8}}), Answers{8});
  EXPECT_EQ(relocate(ours, larger, {{"2:0", 8}}), Answers{2 * 12 + 8});
}

// ---- ints: every size and sign stands for every other
// -------------------------------------------------------------------

TEST(KernelMatrix, Integers) {
  const auto make = [](std::size_t bytes, int encoding) -> Make {
    return [=](BtfMaker& maker) {
      return maker.structure("core_reloc_ints",
                             {{"x", maker.integer("x", 2)}, {"f", maker.integer("t", bytes, encoding)}});
    };
  };
  for (const std::size_t bytes : {1U, 2U, 4U, 8U}) {
    for (const int encoding : {0, BTF_INT_SIGNED, BTF_INT_BOOL}) {
      const auto at = static_cast<std::int64_t>(std::max<std::size_t>(bytes, 2));
      EXPECT_EQ(relocate(make(2, 0), make(bytes, encoding), {{"0:1", 2}, {"0:1", 2, Kind::fieldByteSize}}),
                (Answers{at, static_cast<std::int64_t>(bytes)}));
    }
  }
}

// ---- misc: one struct by two views, and p[1] of it
// ---------------------------------------------------------------------

TEST(KernelMatrix, Misc) {
  Scenario scenario;
  const TypeId ours = scenario.object.integer();
  const TypeId a = scenario.object.structure("core_reloc_misc___a", {{"a1", ours}, {"a2", ours}});
  const TypeId b = scenario.object.structure("core_reloc_misc___b", {{"b1", ours}, {"b2", ours}});
  const TypeId extensible = scenario.object.structure("core_reloc_misc_extensible", {{"a", ours}, {"b", ours}});
  const TypeId theirs = scenario.kernel.integer();
  scenario.kernel.structure("core_reloc_misc___a", {{"a1", theirs}, {"a2", theirs}});
  scenario.kernel.structure("core_reloc_misc___b", {{"b1", theirs}, {"b2", theirs}});
  scenario.kernel.structure("core_reloc_misc_extensible", {{"a", theirs}, {"b", theirs}, {"c", theirs}, {"d", theirs}});
  expectResolved(scenario.ask(kOffset, a, "0:0", 0), 0);
  expectResolved(scenario.ask(kOffset, b, "0:0", 0), 0);
  expectResolved(scenario.ask(kOffset, extensible, "2", 16), 32);
}

// ---- existence
// --------------------------------------------------------------------------------------------------------

TypeId existence(BtfMaker& maker) {
  const TypeId integer = maker.integer();
  return maker.structure("core_reloc_existence", {{"a", integer},
                                                  {"", maker.structure("", {{"b", integer}})},
                                                  {"c", integer},
                                                  {"arr", maker.array(integer, 1)},
                                                  {"s", maker.structure("", {{"x", integer}})}});
}

TEST(KernelMatrix, Existence) {
  const std::vector<Field> fields = {{"0:0", 1, Kind::fieldExists},
                                     {"0:1:0", 1, Kind::fieldExists},
                                     {"0:2", 1, Kind::fieldExists},
                                     {"0:3:0", 1, Kind::fieldExists},
                                     {"0:4:0", 1, Kind::fieldExists}};
  EXPECT_EQ(relocate(existence, existence, fields), (Answers{1, 1, 1, 1, 1}));
  const auto other = [](auto members) { return withMembers(members, "core_reloc_existence"); };
  // minimal
  EXPECT_EQ(
      relocate(existence, other([](BtfMaker&, TypeId integer) { return std::vector<Member>{{"a", integer}}; }), fields),
      (Answers{1, 0, 0, 0, 0}));
  // wrong_field_defs: other types under the same names
  EXPECT_EQ(relocate(existence, other([](BtfMaker& maker, TypeId integer) {
                       return std::vector<Member>{{"a", maker.pointer()},
                                                  {"b", maker.pointer()},
                                                  {"c", maker.structure("", {{"x", integer}})},
                                                  {"arr", integer},
                                                  {"s", integer}};
                     }),
                     fields),
            (Answers{0, 0, 0, 0, 0}));
}

// ---- bitfields
// ----------------------------------------------------------------------------------------------------------

struct Bits {
  std::size_t bytes;
  int encoding;
  std::uint32_t bits;
  std::uint32_t at;
};

Make bitfields(const std::vector<Bits>& fields) {
  return [fields](BtfMaker& maker) {
    constexpr std::array<const char*, 7> kNames = {"ub1", "ub2", "ub7", "sb4", "sb20", "u32", "s32"};
    std::vector<Member> members;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      members.push_back(
          {kNames.at(i), maker.integer("t", fields[i].bytes, fields[i].encoding), fields[i].bits, fields[i].at});
    }
    return maker.structure("core_reloc_bitfields", members, 64);
  };
}

/// offset, size, sign, left and right shift, as BPF_CORE_READ_BITFIELD asks for them.
std::vector<Field> bitfieldQuestions(const char* access, const Bits& field) {
  const std::uint32_t width = field.bits == 0 ? static_cast<std::uint32_t>(field.bytes * 8) : field.bits;
  const auto right = static_cast<std::int32_t>(64 - width);
  const bool plain = field.bits == 0;
  return {{access, plain ? static_cast<std::int32_t>(field.at / 8) : 0},
          {access, plain ? static_cast<std::int32_t>(field.bytes) : 0, Kind::fieldByteSize},
          {access, field.encoding, Kind::fieldSigned},
          {access, plain ? right : 0, Kind::fieldLeftShift},
          {access, right, Kind::fieldRightShift}};
}

/// Reads what lies in `memory` as those five numbers tell: how the macro does it.
std::int64_t readBits(std::span<const std::uint8_t> memory, const Answers& answers) {
  std::uint64_t value = 0;
  std::memcpy(&value, memory.data() + answers[0], static_cast<std::size_t>(answers[1]));
  value <<= static_cast<unsigned>(answers[3]);
  return answers[2] != 0 ? static_cast<std::int64_t>(value) >> answers[4]
                         : static_cast<std::int64_t>(value >> static_cast<unsigned>(answers[4]));
}

TEST(KernelMatrix, Bitfields) {
  const std::vector<Bits> ours = {{1, 0, 1, 0},
                                  {1, 0, 2, 1},
                                  {4, 0, 7, 3},
                                  {4, BTF_INT_SIGNED, 4, 10},
                                  {4, BTF_INT_SIGNED, 20, 32},
                                  {4, 0, 0, 64},
                                  {4, BTF_INT_SIGNED, 0, 96}};
  const std::vector<std::vector<Bits>> kernels = {
      ours,
      // bit_sz_change: other widths, some grown, some shrunk
      {{1, 0, 6, 0},
       {1, 0, 8, 6},
       {4, 0, 15, 14},
       {4, BTF_INT_SIGNED, 8, 29},
       {4, BTF_INT_SIGNED, 30, 64},
       {2, 0, 0, 96},
       {8, BTF_INT_SIGNED, 0, 128}},
      // bitfield_vs_int: all are plain integers
      {{8, 0, 0, 0},
       {1, 0, 0, 64},
       {8, 0, 0, 128},
       {8, BTF_INT_SIGNED, 0, 192},
       {1, BTF_INT_SIGNED, 0, 256},
       {4, 0, 0, 288},
       {4, BTF_INT_SIGNED, 0, 320}},
      // just_big_enough: up to 64 bits
      {{8, 0, 1, 63},
       {8, 0, 64, 64},
       {8, 0, 63, 128},
       {8, BTF_INT_SIGNED, 33, 210},
       {8, BTF_INT_SIGNED, 60, 256},
       {8, 0, 7, 320},
       {8, BTF_INT_SIGNED, 9, 330}},
  };
  constexpr std::array<const char*, 7> kAccesses = {"0:0", "0:1", "0:2", "0:3", "0:4", "0:5", "0:6"};
  for (const auto& theirs : kernels) {
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const auto answers = relocate(bitfields(ours), bitfields(theirs), bitfieldQuestions(kAccesses.at(i), ours[i]));
      for (const std::int64_t each : answers) {
        ASSERT_GE(each, 0);
      }
      // All ones but the field's top bit: the largest value of it if it is signed.
      const Bits& field = theirs[i];
      const std::uint32_t width = field.bits == 0 ? static_cast<std::uint32_t>(field.bytes * 8) : field.bits;
      std::array<std::uint8_t, 64> memory{};
      memory.fill(0xff);
      const std::uint32_t top = field.at + width - 1;
      memory.at(top / 8) &= static_cast<std::uint8_t>(~(1U << (top % 8)));
      EXPECT_EQ(readBits(memory, answers), static_cast<std::int64_t>((std::uint64_t{1} << (width - 1)) - 1)) << i;
      // The top bit only.
      memory.fill(0);
      memory.at(top / 8) = static_cast<std::uint8_t>(1U << (top % 8));
      const auto high = static_cast<std::int64_t>(std::uint64_t{1} << (width - 1));
      EXPECT_EQ(readBits(memory, answers), field.encoding != 0 && width < 64 ? -high : high) << i;
    }
  }
}

TEST(KernelMatrix, BitfieldsThatAreTooBig) {
  const std::vector<Bits> ours = {{4, 0, 4, 0}};
  EXPECT_EQ(relocate(bitfields(ours), bitfields({{8, 0, 64, 60}}), bitfieldQuestions("0:0", ours[0])),
            (Answers{kFailed, kFailed, kFailed, kFailed, kFailed}));
}

// ---- size
// ---------------------------------------------------------------------------------------------------------------

Make sizes(std::uint32_t factor) {
  return [factor](BtfMaker& maker) {
    const TypeId integer = maker.integer();
    return maker.structure("core_reloc_size",
                           {{"int_field", maker.integer("i", std::size_t{4} * factor)},
                            {"struct_field", maker.structure("", {{"x", maker.array(integer, factor)}})},
                            {"union_field", maker.unionOf("", {{"x", maker.array(integer, factor)}})},
                            {"arr_field", maker.array(integer, 4 * factor)},
                            {"ptr_field", maker.pointer()},
                            {"enum_field", maker.enumeration("e", {{"V", 123}}, false, 4 * factor)},
                            {"float_field", maker.floating("float", std::size_t{4} * factor)}});
  };
}

TEST(KernelMatrix, Sizes) {
  const std::vector<Field> fields = {{"0:0", 4, Kind::fieldByteSize},   {"0:1", 4, Kind::fieldByteSize},
                                     {"0:2", 4, Kind::fieldByteSize},   {"0:3", 16, Kind::fieldByteSize},
                                     {"0:3:0", 4, Kind::fieldByteSize}, {"0:4", 8, Kind::fieldByteSize},
                                     {"0:5", 4, Kind::fieldByteSize},   {"0:6", 4, Kind::fieldByteSize}};
  EXPECT_EQ(relocate(sizes(1), sizes(1), fields), (Answers{4, 4, 4, 16, 4, 8, 4, 4}));
  EXPECT_EQ(relocate(sizes(1), sizes(2), fields), (Answers{8, 8, 8, 32, 4, 8, 8, 8}));
  // err_ambiguous
  EXPECT_EQ(relocate(sizes(1),
                     [](BtfMaker& maker) {
                       sizes(1)(maker);
                       return sizes(2)(maker);
                     },
                     {fields[0]}),
            Answers{kFailed});
}

// ---- type_based and type_id
// ------------------------------------------------------------------------------------------------

/// One type of each sort that the kernel's test asks about, in its names.
std::vector<TypeId> typeBased(BtfMaker& maker, std::uint32_t scale = 1) {
  const TypeId integer = maker.integer();
  const TypeId a = maker.structure("a_struct", {{"x", maker.array(integer, scale)}});
  const TypeId u = maker.unionOf("a_union", {{"y", integer}, {"z", maker.array(integer, scale)}});
  return {a,
          u,
          maker.enumeration("an_enum", {{"AN_ENUM_VAL1", 1}, {"AN_ENUM_VAL2", 2}}),
          maker.definedAs("named_struct_typedef", a),
          maker.definedAs("anon_struct_typedef", maker.structure("", {{"x", maker.array(integer, scale)}})),
          maker.definedAs("struct_ptr_typedef", maker.pointer(a)),
          maker.definedAs("int_typedef", integer),
          maker.definedAs("enum_typedef", maker.enumeration("", {{"TYPEDEF_ENUM_VAL1", 0}})),
          maker.definedAs("void_ptr_typedef", maker.pointer()),
          maker.definedAs("restrict_ptr_typedef", maker.restricted(maker.pointer(integer))),
          maker.definedAs("func_proto_typedef", maker.pointer(maker.prototype(integer, {{"", integer}}))),
          maker.definedAs("arr_typedef", maker.array(maker.integer("char", 1), 20 * scale))};
}

TEST(KernelMatrix, TypesAreThere) {
  Scenario scenario;
  const auto ours = typeBased(scenario.object);
  scenario.kernel.floating(); // so that ids differ
  const auto theirs = typeBased(scenario.kernel);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    expectResolved(scenario.ask(Kind::typeExists, ours[i], "0", 1), 1);
    expectResolved(scenario.ask(Kind::typeMatches, ours[i], "0", 1), 1);
    expectResolved(scenario.ask(Kind::typeIdLocal, ours[i], "0", 0), ours[i]);
    expectResolved(scenario.ask(Kind::typeIdTarget, ours[i], "0", 0), theirs[i]);
  }
}

TEST(KernelMatrix, TypesAreAllMissing) {
  Scenario scenario;
  const auto ours = typeBased(scenario.object);
  for (const TypeId type : ours) {
    expectResolved(scenario.ask(Kind::typeExists, type, "0", 1), 0);
    expectResolved(scenario.ask(Kind::typeMatches, type, "0", 1), 0);
    expectResolved(scenario.ask(Kind::typeIdTarget, type, "0", 9), 0);
    expectResolved(scenario.ask(Kind::typeIdLocal, type, "0", 9), type);
  }
}

TEST(KernelMatrix, TypesOfAnotherSize) {
  Scenario scenario;
  const auto ours = typeBased(scenario.object);
  typeBased(scenario.kernel, 3);
  expectResolved(scenario.ask(Kind::typeSize, ours[0], "0", 4), 12);
  expectResolved(scenario.ask(Kind::typeSize, ours[1], "0", 4), 12);
  expectResolved(scenario.ask(Kind::typeSize, ours[3], "0", 4), 12);
  expectResolved(scenario.ask(Kind::typeSize, ours[5], "0", 8), 8);
  expectResolved(scenario.ask(Kind::typeSize, ours[11], "0", 20), 60);
  expectResolved(scenario.ask(Kind::typeMatches, ours[11], "0", 1), 0);
}

TEST(KernelMatrix, TypesAreIncompatible) {
  Scenario scenario;
  BtfMaker& object = scenario.object;
  BtfMaker& kernel = scenario.kernel;
  // The names are there, and mean something else.
  const TypeId ours = object.integer();
  const TypeId theirs = kernel.integer();
  const std::vector<TypeId> types = {
      object.definedAs("named_struct_typedef", object.structure("a", {})),
      object.definedAs("void_ptr_typedef", object.pointer()), object.definedAs("int_typedef", ours),
      object.definedAs("func_proto_typedef", object.pointer(object.prototype(ours, {{"", ours}}))),
      object.definedAs("arr_typedef", object.array(ours, 20))};
  kernel.definedAs("named_struct_typedef", kernel.pointer(kernel.structure("a", {})));
  kernel.definedAs("void_ptr_typedef", kernel.pointer(theirs));
  kernel.definedAs("int_typedef", kernel.enumeration("", {{"A", 1}}));
  kernel.definedAs("func_proto_typedef", kernel.pointer(kernel.prototype(theirs, {{"", theirs}, {"", theirs}})));
  kernel.definedAs("arr_typedef", theirs);
  for (const TypeId type : types) {
    expectResolved(scenario.ask(Kind::typeExists, type, "0", 1), 0);
    expectResolved(scenario.ask(Kind::typeMatches, type, "0", 1), 0);
  }
}

// ---- enumval and enum64val
// ------------------------------------------------------------------------------------------------

TEST(KernelMatrix, Enumerators) {
  Scenario scenario;
  const TypeId named = scenario.object.enumeration("named_enum", {{"V1", 1}, {"V2", 2}, {"V3___named", 3}});
  const TypeId anonymous =
      scenario.object.definedAs("anon_enum", scenario.object.enumeration("", {{"W1", 0x10}, {"W2", 0x20}}));
  // diff and val3_missing
  scenario.kernel.enumeration("named_enum___diff", {{"V1", 101}, {"V2___x", 202}});
  scenario.kernel.definedAs("anon_enum", scenario.kernel.enumeration("", {{"W2", 0x220}, {"W1", 0x110}}));
  expectResolved(scenario.ask(Kind::enumeratorExists, named, "0", 1), 1);
  expectResolved(scenario.ask(Kind::enumeratorExists, named, "2", 1), 0);
  expectResolved(scenario.ask(Kind::enumeratorValue, named, "0", 1), 101);
  expectResolved(scenario.ask(Kind::enumeratorValue, named, "1", 2), 202);
  expectPoisoned(scenario.ask(Kind::enumeratorValue, named, "2", 3), Fault::noMatch);
  expectResolved(scenario.ask(Kind::enumeratorValue, anonymous, "0", 0x10), 0x110);
  expectResolved(scenario.ask(Kind::enumeratorValue, anonymous, "1", 0x20), 0x220);
}

TEST(KernelMatrix, Enumerators64) {
  Scenario scenario;
  const TypeId isUnsigned = scenario.object.enumeration64("named_unsigned_enum64", {{"U1", 0x1ffffffffU}, {"U2", 2}});
  const TypeId isSigned = scenario.object.enumeration64(
      "named_signed_enum64", {{"S1", 0x1ffffffffU}, {"S2", static_cast<std::uint64_t>(-2)}}, true);
  scenario.kernel.enumeration64("named_unsigned_enum64", {{"U1", 0x101ffffffffU}, {"U2", 0x202ffffffffU}});
  scenario.kernel.enumeration64("named_signed_enum64",
                                {{"S1", static_cast<std::uint64_t>(-101)}, {"S2", static_cast<std::uint64_t>(-202)}},
                                true);
  const auto value = [&](TypeId type, const char* access, std::uint64_t local) {
    return scenario.relocate(Kind::enumeratorValue, type, access, wide(local)).code;
  };
  EXPECT_EQ(value(isUnsigned, "0", 0x1ffffffffU), wide(0x101ffffffffU));
  EXPECT_EQ(value(isUnsigned, "1", 2), wide(0x202ffffffffU));
  EXPECT_EQ(value(isSigned, "0", 0x1ffffffffU), wide(static_cast<std::uint64_t>(-101)));
  EXPECT_EQ(value(isSigned, "1", static_cast<std::uint64_t>(-2)), wide(static_cast<std::uint64_t>(-202)));
}

// ---- autosize: loads of pointers and unsigned integers take on the field's width
// -----------------------------------------------

/// The kernel's test: a 32-bit kernel, whose pointers and longs have 4 bytes.
TEST(KernelMatrix, Autosize) {
  Scenario scenario;
  BtfMaker& object = scenario.object;
  BtfMaker& kernel = scenario.kernel;
  const TypeId ours = object.structure("test_struct", {{"ptr", object.pointer()},
                                                       {"val1", object.unsignedInteger("unsigned long", 8)},
                                                       {"val2", object.unsignedInteger("unsigned int", 4)},
                                                       {"val3", object.unsignedInteger("unsigned short", 2)},
                                                       {"val4", object.unsignedInteger("unsigned char", 1)},
                                                       {"sint", object.integer("int", 4)}});
  const TypeId theirLong = kernel.unsignedInteger("unsigned long", 4);
  kernel.structure("test_struct",
                   {{"ptr", kernel.pointer(), 0, 0},
                    {"val2", kernel.unsignedInteger("unsigned long long", 8), 0, 32},
                    {"val1", theirLong, 0, 96},
                    {"val4", kernel.unsignedInteger("unsigned short", 2), 0, 128},
                    {"val3", kernel.unsignedInteger("unsigned char", 1), 0, 144},
                    {"sint", kernel.integer("long long", 8), 0, 160}},
                   28);
  const auto loaded = [&](const char* access, int size, std::int16_t offset) {
    return scenario.relocate(kOffset, ours, access, load(size, offset)).code.front();
  };
  EXPECT_EQ(loaded("0:0", BPF_DW, 0), load(BPF_W, 0));
  EXPECT_EQ(loaded("0:1", BPF_DW, 8), load(BPF_W, 12));
  EXPECT_EQ(loaded("0:2", BPF_W, 16), load(BPF_DW, 4));
  EXPECT_EQ(loaded("0:3", BPF_H, 20), load(BPF_B, 18));
  EXPECT_EQ(loaded("0:4", BPF_B, 22), load(BPF_H, 16));
  EXPECT_EQ(loaded("0:5", BPF_W, 24), poisoned());
}

} // namespace
} // namespace btfd::core
