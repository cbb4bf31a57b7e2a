#pragma once

#include "check/check_object.h"
#include "test_support/btf_maker.h"
#include "test_support/elf_maker.h"
#include "test_support/files.h"

#include <bpf/libbpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace btfd::check {

/// What a kernel knows of bpf(2): how many of each.
struct Numbers {
  unsigned helpers = 212;
  unsigned mapTypes = 34;
  unsigned programTypes = 33;
  unsigned attachTypes = 60;
};

inline void addEnum(test_support::BtfMaker& btf, const char* name, unsigned count) {
  std::vector<std::string> names;
  for (unsigned i = 0; i < count; ++i) {
    names.push_back(std::string(name) + "_" + std::to_string(i));
  }
  std::vector<test_support::Enumerator> values;
  for (unsigned i = 0; i < count; ++i) {
    values.push_back({names[i].c_str(), i});
  }
  values.push_back({"__MAX", count});
  btf.enumeration(name, values);
}

/// A kernel that has what the project's test programs need, unless it is told otherwise.
inline test_support::BtfMaker kernelBtf(const Numbers& numbers = {}) {
  test_support::BtfMaker btf;
  addEnum(btf, "bpf_func_id", numbers.helpers);
  addEnum(btf, "bpf_map_type", numbers.mapTypes);
  addEnum(btf, "bpf_prog_type", numbers.programTypes);
  addEnum(btf, "bpf_attach_type", numbers.attachTypes);
  return btf;
}

inline std::unique_ptr<TargetKernel> kernelOf(const test_support::BtfMaker& btf) {
  auto kernel = TargetKernel::make("test", {.btf = btf.bytes(), .distilledBase = {}});
  EXPECT_TRUE(kernel) << kernel.error().message;
  return std::move(*kernel);
}

inline Report check(const ObjectToCheck& object, const test_support::BtfMaker& kernel,
                    const CheckOptions& options = {}) {
  return checkObject(object, *kernelOf(kernel), options);
}

inline bpf_insn call(std::int32_t helper) {
  return {.code = BPF_JMP | BPF_CALL, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = helper};
}

inline bpf_insn move(std::int32_t value) {
  return {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = value};
}

inline bpf_insn leave() {
  return {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0};
}

inline ObjectToCheck read(const std::vector<std::byte>& content) {
  auto object = ObjectToCheck::read(test_support::memfdOf(content));
  EXPECT_TRUE(object) << object.error().message;
  return std::move(*object);
}

/// An object with one program, called "program", in `section`.
inline ObjectToCheck objectWith(const char* section, std::vector<bpf_insn> code = {move(0), leave()}) {
  test_support::ElfMaker elf;
  const std::size_t number = elf.code(section, code);
  elf.function("program", number, 0, code.size());
  elf.section("license", std::as_bytes(std::span("GPL", 4)));
  return read(elf.bytes());
}

/// One of the project's own test programs.
inline ObjectToCheck compiled(const char* name) {
  return read(test_support::readFile(std::string(BTFD_BPF_OBJECTS) + "/" + name + ".o"));
}

inline auto finding(Severity severity, Topic topic, const char* message) {
  return testing::AllOf(testing::Field(&Finding::severity, severity), testing::Field(&Finding::topic, topic),
                        testing::Field(&Finding::message, testing::HasSubstr(message)));
}

class CheckObjectTest : public testing::Test {
 protected:
  CheckObjectTest() { libbpf_set_print(nullptr); }

  test_support::BtfMaker kernel_ = kernelBtf();
};

} // namespace btfd::check
