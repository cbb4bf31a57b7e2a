#include "btfctl/object_file.h"
#include "btfctl/reused_map.h"

#include <bpf/bpf.h>
#include <gmock/gmock.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

namespace btfd::btfctl {
namespace {

using testing::HasSubstr;

/// A directory of its own for each test.
class ObjectFile : public testing::Test {
 protected:
  ObjectFile() {
    std::string pattern = testing::TempDir() + "btfctl-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }

  ~ObjectFile() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& content) {
    const std::filesystem::path path = directory_ / "x.o";
    std::ofstream(path) << content;
    return path.string();
  }

  std::filesystem::path directory_;
};

TEST_F(ObjectFile, IsCopiedSoThatNobodyCanChangeIt) {
  const UniqueFd copy = openObject(write("bytes")).value();
  EXPECT_EQ(::fcntl(copy.get(), F_GET_SEALS) & (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
            F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  write("other");
  std::array<char, 16> content{};
  EXPECT_EQ(::pread(copy.get(), content.data(), content.size(), 0), 5);
  EXPECT_STREQ(content.data(), "bytes");
}

TEST_F(ObjectFile, OfMoreThan64MiBIsPassedItself) {
  const std::string path = write("");
  std::filesystem::resize_file(path, (64U << 20U) + 1);
  const UniqueFd file = openObject(path).value();
  EXPECT_EQ(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file.get())), path);
}

TEST_F(ObjectFile, ThatCannotBeReadIsAnErrorThatNamesIt) {
  EXPECT_THAT(openObject(directory_ / "no.o").error().message, HasSubstr("no.o: No such file or directory"));
  EXPECT_THAT(openObject(directory_).error().message, HasSubstr("Is a directory"));
}

/// A bpffs that only this process sees; empty if it may not mount one.
std::filesystem::path privateBpffs() {
  const std::filesystem::path where = testing::TempDir();
  const bool mounted = ::unshare(CLONE_NEWNS) == 0 &&
                       ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                       ::mount("bpf", where.c_str(), "bpf", 0, nullptr) == 0;
  return mounted ? where : std::filesystem::path{};
}

UniqueFd createMap() {
  return UniqueFd(::bpf_map_create(BPF_MAP_TYPE_ARRAY, "btfctl_test", 4, 4, 1, nullptr));
}

TEST(OpenMap, OpensMapsByKernelId) {
  const UniqueFd map = createMap();
  if (!map) {
    GTEST_SKIP() << "cannot create a BPF map: " << std::strerror(errno);
  }
  bpf_map_info info{};
  __u32 size = sizeof(info);
  ASSERT_EQ(::bpf_map_get_info_by_fd(map.get(), &info, &size), 0);
  EXPECT_TRUE(openMap(std::to_string(info.id)));
  EXPECT_THAT(openMap("4294967295").error().message, HasSubstr("there is no map with id 4294967295"));
}

TEST(OpenMap, OpensPinnedMaps) {
  const std::filesystem::path bpffs = privateBpffs();
  const UniqueFd map = createMap();
  const std::string pin = bpffs / "map";
  if (bpffs.empty() || !map || ::bpf_obj_pin(map.get(), pin.c_str()) != 0) {
    GTEST_SKIP() << "cannot create and pin a BPF map: " << std::strerror(errno);
  }
  EXPECT_TRUE(openMap(pin));
  EXPECT_THAT(openMap(bpffs / "no").error().message, HasSubstr("cannot open pinned map " + (bpffs / "no").string()));
}

TEST(OpenMap, PinnedProgramsAreNoMaps) {
  const std::array<bpf_insn, 2> exit{
      bpf_insn{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
      bpf_insn{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
  const std::filesystem::path bpffs = privateBpffs();
  const UniqueFd program(
      ::bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "btfctl_test", "GPL", exit.data(), exit.size(), nullptr));
  const std::string pin = bpffs / "program";
  if (bpffs.empty() || !program || ::bpf_obj_pin(program.get(), pin.c_str()) != 0) {
    GTEST_SKIP() << "cannot load and pin a BPF program: " << std::strerror(errno);
  }
  EXPECT_THAT(openMap(pin).error().message, HasSubstr("is pinned, but is no map"));
}

} // namespace
} // namespace btfd::btfctl
