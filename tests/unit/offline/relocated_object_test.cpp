// Objects relocated for kernels made by hand: what changes in the file, and what may not.
#include "made_object.h"
#include "offline/relocated_object.h"

#include <bpf/libbpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace btfd::offline {
namespace {

using check::Finding;
using check::ObjectToCheck;
using test_support::BtfMaker;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

using Bytes = std::vector<std::byte>;

bpf_insn poison() {
  return {.code = BPF_JMP | BPF_CALL, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0xbad2310};
}

bool same(const bpf_insn& left, const bpf_insn& right) {
  return std::memcmp(&left, &right, sizeof(left)) == 0;
}

ObjectToCheck compiled(const char* name) {
  return read(test_support::readFile(std::string(BTFD_BPF_OBJECTS) + "/" + name + ".o"));
}

/// Offsets of the bytes in which two files of one size differ.
std::vector<std::size_t> differences(std::span<const std::byte> before, const Bytes& after) {
  EXPECT_EQ(before.size(), after.size());
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < std::min(before.size(), after.size()); ++at) {
    if (before[at] != after[at]) {
      places.push_back(at);
    }
  }
  return places;
}

/// An object whose program asks for the offset of s.f, which is 0 in the object.
class RelocatedObjectTest : public testing::Test {
 protected:
  RelocatedObjectTest() {
    libbpf_set_print(nullptr);
    type_ = btf_.structure("s", {{"f", btf_.integer()}});
  }

  [[nodiscard]] ObjectToCheck object(const char* section) {
    return objectThatAsks(btf_, {{.type = type_, .access = "0:0"}}, section);
  }

  static bpf_insn firstInstruction(const ObjectToCheck& object, const Bytes& image) {
    bpf_insn first{};
    std::memcpy(&first, image.data() + object.code().sections().front().fileOffset, sizeof(first));
    return first;
  }

  BtfMaker btf_;
  BtfMaker kernel_;
  std::uint32_t type_ = 0;
};

TEST_F(RelocatedObjectTest, HasTheKernelsValueAndNoRecordsAndElseTheSameBytes) {
  kernel_.structure("s", {{"f", kernel_.integer(), 0, 64}}, 12);
  const auto object = this->object("socket");
  const auto relocated = relocateObject(object, *kernelOf(kernel_));
  ASSERT_TRUE(relocated);
  EXPECT_TRUE(same(firstInstruction(object, relocated->image), move(8)));
  EXPECT_EQ(relocated->counts.resolved, 1U);
  EXPECT_THAT(relocated->poisoned, IsEmpty());
  EXPECT_THAT(relocated->needs, IsEmpty());
  // The immediate's lowest byte, and the length of the records, which has one byte that is not zero.
  EXPECT_EQ(differences(object.image(), relocated->image).size(), 2U);
  EXPECT_TRUE(read(relocated->image).records().empty());
}

TEST_F(RelocatedObjectTest, PoisonsWhatTheKernelLacks) {
  kernel_.structure("s", {{"other", kernel_.integer()}});
  const auto object = this->object("socket");
  const auto relocated = relocateObject(object, *kernelOf(kernel_));
  ASSERT_TRUE(relocated);
  EXPECT_TRUE(same(firstInstruction(object, relocated->image), poison()));
  EXPECT_EQ(relocated->counts.poisoned, 1U);
  EXPECT_THAT(relocated->poisoned, ElementsAre(Field(&Finding::message, HasSubstr("has no 'f'"))));
}

TEST_F(RelocatedObjectTest, IsRefusedWhereARelocationFails) {
  kernel_.structure("s", {{"f", kernel_.integer(), 0, 64}}, 12);
  kernel_.structure("s", {{"f", kernel_.integer(), 0, 32}}, 12);
  const auto relocated = relocateObject(object("socket"), *kernelOf(kernel_));
  ASSERT_FALSE(relocated);
  EXPECT_THAT(relocated.error(), ElementsAre(Field(&Finding::program, "program")));
}

TEST_F(RelocatedObjectTest, PoisonsWhatFailsInAProgramThatIsNotLoaded) {
  kernel_.structure("s", {{"f", kernel_.integer(), 0, 64}}, 12);
  kernel_.structure("s", {{"f", kernel_.integer(), 0, 32}}, 12);
  const auto object = this->object("?socket");
  const auto relocated = relocateObject(object, *kernelOf(kernel_));
  ASSERT_TRUE(relocated);
  EXPECT_TRUE(same(firstInstruction(object, relocated->image), poison()));
  EXPECT_EQ(relocated->poisoned.size(), 1U);
}

TEST_F(RelocatedObjectTest, IsRefusedForAKernelOfAnotherByteOrder) {
  kernel_.structure("s", {{"f", kernel_.integer(), 0, 64}}, 12);
  const auto other = btf__endianness(kernel_.get()) == BTF_LITTLE_ENDIAN ? BTF_BIG_ENDIAN : BTF_LITTLE_ENDIAN;
  ASSERT_EQ(btf__set_endianness(kernel_.get(), other), 0);
  const auto relocated = relocateObject(object("socket"), *kernelOf(kernel_));
  ASSERT_FALSE(relocated);
  EXPECT_THAT(relocated.error(), ElementsAre(Field(&Finding::message, HasSubstr("-endian"))));
}

TEST_F(RelocatedObjectTest, IsACopyWhereThereIsNothingToRelocate) {
  kernel_.integer();
  const auto object = compiled("xdp");
  const auto relocated = relocateObject(object, *kernelOf(kernel_));
  ASSERT_TRUE(relocated);
  EXPECT_THAT(differences(object.image(), relocated->image), IsEmpty());
}

std::vector<std::string> needed(const char* name) {
  std::vector<std::string> names;
  for (const KernelBtfNeed& need : kernelBtfNeeds(compiled(name))) {
    names.push_back(need.name);
  }
  return names;
}

TEST(KernelBtfNeedsTest, AreTargetsFunctionsVariablesAndStructOps) {
  libbpf_set_print(nullptr);
  EXPECT_THAT(needed("fentry"), ElementsAre("on_sleep", "on_sleep_return"));
  EXPECT_THAT(needed("lsm"), ElementsAre("on_file_open"));
  EXPECT_THAT(needed("iter_task"), ElementsAre("dump_task"));
  EXPECT_THAT(needed("missing_kernel_function"),
              ElementsAre("on_new_task", "function_that_no_kernel_has", "variable_that_no_kernel_has"));
  EXPECT_THAT(needed("struct_ops"), testing::Contains("frozen_window"));
}

TEST(KernelBtfNeedsTest, AreNoneOfWhatFindsItsTargetWithoutBtf) {
  libbpf_set_print(nullptr);
  for (const char* name : {"xdp", "kprobe", "tracepoint", "raw_tracepoint", "perf_event", "global_data"}) {
    EXPECT_THAT(needed(name), IsEmpty()) << name;
  }
}

} // namespace
} // namespace btfd::offline
