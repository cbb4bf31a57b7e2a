#include "loader/arena_address.h"
#include "loader/open_object.h"
#include "test_support/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace btfd::loader {
namespace {

using testing::HasSubstr;

class ArenaAddress : public testing::Test {
 protected:
  ArenaAddress()
      : bytes_(test_support::readFile(std::string(BTFD_BPF_OBJECTS) + "/arena.o")),
        object_(openObject(bytes_, {}, log_).value()), maps_(*object_) {}

  /// What is said of the arena at this address.
  std::string at(std::uint64_t address) {
    bpf_map__set_map_extra(maps_.find("arena").value(), address);
    const auto checked = checkArenaAddresses(maps_);
    return checked ? "" : checked.error().parameters.at("message").get<std::string>();
  }

 private:
  object::LibbpfLog log_;
  std::vector<std::byte> bytes_;
  ObjectHandle object_;
  MapsByName maps_;
};

TEST_F(ArenaAddress, WhereThereIsNothingIsFine) {
  EXPECT_EQ(at(0), "");
  EXPECT_EQ(at(std::uint64_t{1} << 45U), "");
  EXPECT_EQ(at(std::uint64_t{1} << 45U), "") << "looking leaves nothing there";
}

TEST_F(ArenaAddress, WhereThisProcessHasMemoryIsRefused) {
  const auto page = static_cast<std::size_t>(::getpagesize());
  void* memory = ::mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  EXPECT_THAT(at(address), HasSubstr("in use"));
  EXPECT_THAT(at(address - 99 * page), HasSubstr("in use")) << "the arena's last page";
  EXPECT_THAT(at(reinterpret_cast<std::uint64_t>(this) & ~(page - 1)), HasSubstr("in use"));
  ::munmap(memory, page);
}

} // namespace
} // namespace btfd::loader
