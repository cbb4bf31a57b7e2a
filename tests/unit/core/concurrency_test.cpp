// Many threads resolve against one kernel at the same time. To be run with ThreadSanitizer.
#include "scenario.h"
#include "test_support/files.h"

#include <bpf/libbpf.h>

#include <latch>
#include <memory>
#include <thread>

namespace btfd::core {
namespace {

/// What each thread has of its own: an object and its code.
class Client {
 public:
  explicit Client(int number) {
    const TypeId integer = object_.integer();
    const TypeId root = object_.structure("s", {{"a", integer}, {"b", integer}, {"only_in_module", integer}});
    const TypeId ofModule = object_.structure("driver", {{"a", integer}});
    const TypeId color = object_.enumeration("color", {{"RED", 1}});
    const TypeId pointers = object_.definedAs("pointers", object_.array(object_.pointer(root), 3));
    ask(Kind::fieldByteOffset, root, "0:0", 0);
    ask(Kind::fieldByteOffset, root, "0:1", 4);
    ask(Kind::fieldByteOffset, root, "0:2", 8);
    ask(Kind::fieldByteOffset, ofModule, "0:0", 0);
    ask(Kind::enumeratorValue, color, "0", 1);
    ask(Kind::typeMatches, pointers, "0", 1);
    ask(Kind::typeSize, pointers, "0", 24);
    ask(Kind::typeIdLocal, root, "0", number);
  }

  /// The values, after relocation against `spec`; 0 for what is poisoned.
  std::vector<std::uint64_t> relocate(const btf::KernelSpec& spec) {
    std::vector<std::span<std::byte>> sections;
    std::vector<Code> codes = codes_;
    for (Code& each : codes) {
      sections.push_back(std::as_writable_bytes(std::span(each)));
    }
    std::vector<std::uint64_t> values;
    for (const Relocation& each : core::relocate(Types::ofObject(object_.btf()), records_, sections, Targets(spec))) {
      EXPECT_NE(each.outcome, Outcome::failed) << static_cast<int>(each.fault);
      values.push_back(each.value);
    }
    return values;
  }

 private:
  void ask(Kind kind, TypeId type, const char* access, std::int32_t local) {
    records_.records.push_back({.section = static_cast<std::uint32_t>(records_.sections.size()),
                                .instructionOffset = 0,
                                .type = type,
                                .access = object_.string(access),
                                .kind = kind});
    records_.sections.push_back(0);
    codes_.push_back({move(local)});
  }

  BtfMaker object_;
  Records records_;
  std::vector<Code> codes_;
};

class ConcurrencyTest : public testing::Test {
 protected:
  static constexpr int kThreads = 8;
  static constexpr int kTurns = 50;

  ConcurrencyTest() {
    libbpf_set_print(nullptr);
    BtfMaker kernel;
    kernel.unsignedInteger("unsigned long", 8);
    const TypeId integer = kernel.integer();
    const TypeId root =
        kernel.structure("s", {{"x", integer}, {"b", integer}, {"", kernel.structure("", {{"a", integer}})}});
    kernel.enumeration("color", {{"BLUE", 3}, {"RED", 7}});
    kernel.definedAs("pointers", kernel.array(kernel.pointer(root), 3));
    test_support::writeFile(directory_ / "vmlinux", kernel.bytes());
    BtfMaker module = BtfMaker::splitFrom(kernel);
    module.structure("driver", {{"y", integer}, {"a", integer}});
    test_support::writeFile(directory_ / "driver", module.bytes());
  }

  [[nodiscard]] std::shared_ptr<const btf::KernelSpec> spec() const {
    auto built = btf::KernelSpec::build({.directory = directory_.path(), .fallbackPath = {}}, 1);
    EXPECT_TRUE(built) << built.error().message;
    return *built;
  }

  test_support::TemporaryDirectory directory_;
};

TEST_F(ConcurrencyTest, ThreadsThatShareAKernelDoNotDisturbEachOther) {
  const auto kernel = spec();
  std::latch start(kThreads);
  std::vector<std::jthread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      Client client(number);
      start.arrive_and_wait();
      const auto first = client.relocate(*kernel);
      EXPECT_EQ(first[0], 8U);
      EXPECT_EQ(first[1], 4U);
      EXPECT_EQ(first[3], 4U);
      EXPECT_EQ(first[4], 7U);
      EXPECT_EQ(first[5], 1U);
      EXPECT_EQ(first[6], 24U);
      for (int turn = 1; turn < kTurns; ++turn) {
        ASSERT_EQ(client.relocate(*kernel), first);
      }
    });
  }
}

TEST_F(ConcurrencyTest, AKernelMayBeReplacedWhileOthersStillReadIt) {
  std::vector<std::jthread> threads;
  std::latch start(kThreads);
  auto kernel = spec();
  for (int number = 0; number < kThreads; ++number) {
    // Each has its own reference, and drops it when it has done.
    threads.emplace_back([&start, number, own = kernel]() mutable {
      Client client(number);
      start.arrive_and_wait();
      for (int turn = 0; turn < kTurns; ++turn) {
        ASSERT_EQ(client.relocate(*own).front(), 8U);
      }
      own.reset();
    });
  }
  start.wait();
  kernel.reset();
  kernel = spec();
  Client client(kThreads);
  EXPECT_EQ(client.relocate(*kernel).front(), 8U);
}

} // namespace
} // namespace btfd::core
