#include "loader/rejected_instruction.h"

#include <gtest/gtest.h>

namespace btfd::loader {
namespace {

TEST(RejectedInstruction, IsTheLastOneWithItsSource) {
  const auto found = findRejectedInstruction("0: R1=ctx() R10=fp0\n"
                                             "; int a = packet->len; @ a.bpf.c:19\n"
                                             "0: (61) r1 = *(u32 *)(r1 +4)          ; R1=pkt_end()\n"
                                             "; return *(int*)packet->data_end; // no bounds @ a.bpf.c:20\n"
                                             "1: (bf) r2 = r1\n"
                                             "12: (61) r0 = *(u32 *)(r1 +0)\n"
                                             "R1 invalid mem access 'pkt_end'\n"
                                             "processed 2 insns (limit 1000000) max_states_per_insn 0\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->number, 12U);
  EXPECT_EQ(found->text, "r0 = *(u32 *)(r1 +0)");
  EXPECT_EQ(inWords(*found),
            "instruction 12, r0 = *(u32 *)(r1 +0), of a.bpf.c:20: return *(int*)packet->data_end; // no bounds");
}

TEST(RejectedInstruction, OlderKernelsDoNotSayWhichLine) {
  const auto found = findRejectedInstruction("; return *(int*)packet->data_end;\n"
                                             "1: (61) r0 = *(u32 *)(r1 +0)\n"
                                             " R1=pkt_end(id=0,off=0,imm=0) R10=fp0\n"
                                             "R1 invalid mem access 'pkt_end'\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(inWords(*found),
            "instruction 1, r0 = *(u32 *)(r1 +0), of the source line: return *(int*)packet->data_end;");
}

TEST(RejectedInstruction, WithoutSource) {
  const auto found = findRejectedInstruction("1: (95) exit\nR0 !read_ok");
  ASSERT_TRUE(found);
  EXPECT_EQ(inWords(*found), "instruction 1, exit");
}

TEST(RejectedInstruction, MayBeNone) {
  for (const char* log : {"", "\n\n", "func#0 @0\n", "1", "1: ", "1: (9", "12: (61)", "12: (61) ",
                          "99999999999: (95) exit", "; only source\n", "unknown opcode 00\nprocessed 0 insns\n"}) {
    EXPECT_FALSE(findRejectedInstruction(log)) << log;
  }
}

} // namespace
} // namespace btfd::loader
