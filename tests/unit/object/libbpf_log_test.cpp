#include "object/libbpf_log.h"

#include <bpf/libbpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace btfd::object {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(LibbpfLog, KeepsWhatLibbpfWarnsOf) {
  const LibbpfLog log;
  EXPECT_EQ(bpf_object__open_mem("no ELF", 6, nullptr), nullptr);
  ASSERT_FALSE(log.warnings().empty());
  EXPECT_FALSE(log.warnings()[0].starts_with("libbpf: ")) << log.warnings()[0];
  EXPECT_FALSE(log.warnings()[0].ends_with('\n'));
}

TEST(LibbpfLog, LeavesOutTheWrongAdviceOnEperm) {
  LibbpfLog log;
  log.add("libbpf: permission error while running as root; try raising 'ulimit -l'? current value: 8.0 MiB\n");
  log.add("libbpf: prog 'x': failed\n\n");
  log.add("libbpf: \n");
  EXPECT_THAT(log.warnings(), ElementsAre("prog 'x': failed"));
}

TEST(LibbpfLog, IsBounded) {
  LibbpfLog log;
  for (int i = 0; i < 10'000; ++i) {
    log.add("again");
  }
  EXPECT_LE(log.warnings().size(), 1000U);
}

TEST(LibbpfLog, BeginsEmpty) {
  EXPECT_THAT(LibbpfLog().warnings(), IsEmpty());
}

} // namespace
} // namespace btfd::object
