#include "loader/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace btfd::loader {
namespace {

using testing::HasSubstr;

TEST(RejectionReason, IsTheLineBeforeTheStatistics) {
  EXPECT_EQ(rejectionReason("func#0 @0\n"
                            "0: R1=ctx() R10=fp0\n"
                            "0: (61) r0 = *(u32 *)(r2 +0)\n"
                            "R2 !read_ok\n"
                            "processed 1 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 "
                            "mark_read 0\n"),
            "R2 !read_ok");
}

TEST(RejectionReason, StatisticsOfLogLevelTwoAreSkippedToo) {
  EXPECT_EQ(rejectionReason("invalid access to map value\n"
                            "verification time 52 usec\n"
                            "stack depth 16\n"
                            "processed 9 insns (limit 1000000) max_states_per_insn 0\n"),
            "invalid access to map value");
}

TEST(RejectionReason, IsFoundWithoutStatisticsAndWithoutFinalNewline) {
  EXPECT_EQ(rejectionReason("0: (95) exit\nAt program exit the register R0 has unknown scalar value"),
            "At program exit the register R0 has unknown scalar value");
}

TEST(RejectionReason, ALogWithoutReasonHasNone) {
  EXPECT_EQ(rejectionReason(""), "");
  EXPECT_EQ(rejectionReason("\n\n"), "");
  EXPECT_EQ(rejectionReason("processed 2 insns (limit 1000000)\n"), "");
}

TEST(RejectionHint, NamesTheLicense) {
  EXPECT_THAT(rejectionHint("cannot call GPL-restricted function from non-GPL compatible program\n"),
              HasSubstr("license"));
}

TEST(PoisonedInstruction, IsTheOneOfTheCallOfNoHelper) {
  EXPECT_EQ(poisonedInstruction("0: R1=ctx() R10=fp0\n"
                                "7: (bf) r1 = r6\n"
                                "12: (85) call unknown#195896080\n"
                                "invalid func unknown#195896080\n"),
            12);
  EXPECT_EQ(poisonedInstruction("0: (85) call unknown#195896080\n"), 0);
}

TEST(PoisonedInstruction, OtherLogsHaveNone) {
  EXPECT_EQ(poisonedInstruction(""), std::nullopt);
  EXPECT_EQ(poisonedInstruction("12: (85) call unknown#77\n"), std::nullopt);
  EXPECT_EQ(poisonedInstruction("x: (85) call unknown#195896080\n"), std::nullopt);
}

TEST(RejectionHint, SaysWhatToDoAboutComplexity) {
  EXPECT_THAT(rejectionHint("BPF program is too large. Processed 1000001 insn\n"), HasSubstr("too complex"));
  EXPECT_THAT(rejectionHint("The sequence of 8193 jumps is too complex.\n"), HasSubstr("too complex"));
}

TEST(RejectionHint, SaysThatAHelperIsForOtherPrograms) {
  EXPECT_THAT(rejectionHint("0: (85) call bpf_skb_load_bytes#26\nunknown func bpf_skb_load_bytes#26\n"),
              HasSubstr("no such helper for programs of this type"));
  EXPECT_EQ(rejectionHint("unknown func bpf_skb_load_bytes#26\nR0 !read_ok\n"), "");
}

TEST(RejectionHint, SaysToCompareWithNull) {
  EXPECT_THAT(rejectionHint("3: (61) r0 = *(u32 *)(r0 +0)\n"
                            "R0 invalid mem access 'map_value_or_null'\n"
                            "processed 9 insns (limit 1000000)\n"),
              HasSubstr("NULL"));
  EXPECT_EQ(rejectionHint("R0 invalid mem access 'scalar'\n"), "");
}

TEST(RejectionHint, IsEmptyWhereThereIsNothingToAdd) {
  EXPECT_EQ(rejectionHint("R2 !read_ok\n"), "");
}

TEST(LogTail, AShortLogIsWhole) {
  EXPECT_EQ(logTail("one\ntwo\n", 8), "one\ntwo\n");
  EXPECT_EQ(logTail("", 0), "");
}

TEST(LogTail, ALongLogBeginsWithALine) {
  EXPECT_EQ(logTail("one\ntwo\nthree\n", 8), "three\n");
}

TEST(LogTail, ALineThatJustFitsIsKept) {
  EXPECT_EQ(logTail("one\ntwo\nthree\n", 10), "two\nthree\n");
  EXPECT_EQ(logTail("one\ntwo\nthree\n", 6), "three\n");
}

TEST(LogTail, OfALineThatDoesNotFitTheEndIsKept) {
  EXPECT_EQ(logTail("a long line without end", 7), "out end");
  EXPECT_EQ(logTail("a long line\n", 5), "line\n");
}

TEST(LogTail, NoRoomIsNothing) {
  EXPECT_EQ(logTail("one\ntwo", 0), "");
}

TEST(Explain, HasNothingToAddToWhatIsNotEperm) {
  EXPECT_EQ(explain(EINVAL, BPF_PROG_TYPE_XDP), "");
  EXPECT_EQ(explain(0, BPF_PROG_TYPE_XDP), "");
}

TEST(Explain, OfEpermNeverSpeaksOfMemoryLimits) {
  const std::string text = explain(EPERM, BPF_PROG_TYPE_XDP);
  EXPECT_THAT(text, HasSubstr("the daemon"));
  EXPECT_EQ(text.find("ulimit"), std::string::npos);
}

} // namespace
} // namespace btfd::loader
