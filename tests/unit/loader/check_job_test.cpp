#include "loader/check_job.h"
#include "test_support/btf_maker.h"
#include "test_support/files.h"

#include <bpf/libbpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <linux/btf.h>

namespace btfd::loader {
namespace {

using nlohmann::json;
using test_support::BtfMaker;
using testing::HasSubstr;
using testing::Not;

class CheckJobTest : public testing::Test {
 protected:
  CheckJobTest() {
    libbpf_set_print(nullptr);
    kernel_.function("of_the_kernel", kernel_.prototype(kernel_.integer(), {}));
    request_["objects"] = json::array();
    request_["kernels"] = json::array();
  }

  std::size_t send(std::span<const std::byte> content) {
    files_.push_back(test_support::memfdOf(content));
    return files_.size() - 1;
  }

  static std::vector<std::byte> object(const std::string& name) {
    return test_support::readFile(std::string(BTFD_BPF_OBJECTS) + "/" + name + ".o");
  }

  void addObject(std::span<const std::byte> content, const char* name) {
    request_["objects"].push_back({{"objectFileDescriptor", send(content)}, {"name", name}});
  }

  json& addKernel(std::span<const std::byte> content, const char* name) {
    return request_["kernels"].emplace_back(json{{"btfFileDescriptor", send(content)}, {"name", name}});
  }

  Outcome<JobReply> run(std::uint64_t objectBytes = 1U << 20U) {
    RequestDescriptors descriptors(files_);
    return runCheckJob(json{{"parameters", request_}}, descriptors,
                       {.objectBytes = objectBytes, .verifierLogBytes = 1});
  }

  json answer(std::uint64_t objectBytes = 1U << 20U) {
    auto reply = run(objectBytes);
    EXPECT_TRUE(reply) << reply.error().parameters;
    return reply ? std::move(reply->body) : json();
  }

  BtfMaker kernel_;
  json request_;
  std::vector<UniqueFd> files_;
};

TEST_F(CheckJobTest, IsOfEachObjectOnEachKernel) {
  addObject(object("no_btf_needed"), "needs_nothing");
  addObject(object("fentry"), "needs_a_function");
  BtfMaker other;
  other.function("do_nanosleep", other.prototype(other.integer(), {}));
  addKernel(kernel_.bytes(), "one");
  addKernel(other.bytes(), "two");
  const json document = answer();
  EXPECT_EQ(document.at("verdict"), "fails");
  EXPECT_EQ(document.at("/kernels/0/name"_json_pointer), "one");
  EXPECT_EQ(document.at("/kernels/1/name"_json_pointer), "two");
  const auto verdict = [&](std::size_t object, std::size_t kernel) {
    return document.at("objects").at(object).at("reports").at(kernel).at("verdict").get<std::string>();
  };
  EXPECT_EQ(document.at("/objects/1/name"_json_pointer), "needs_a_function");
  EXPECT_EQ(document.at("/objects/1/reports/1/kernel"_json_pointer), "two");
  EXPECT_NE(verdict(0, 0), "fails");
  EXPECT_EQ(verdict(1, 0), "fails");
  EXPECT_NE(verdict(1, 1), "fails");
}

TEST_F(CheckJobTest, WhatHasNoNameGetsOne) {
  addObject(object("no_btf_needed"), "");
  addKernel(kernel_.bytes(), "");
  const json document = answer();
  EXPECT_EQ(document.at("/objects/0/name"_json_pointer), "object 0");
  EXPECT_EQ(document.at("/objects/0/reports/0/kernel"_json_pointer), "kernel 0");
}

TEST_F(CheckJobTest, WhatCannotBeReadDoesNotStopTheOthers) {
  addObject(test_support::bytesOf("no object"), "bad");
  addObject(object("no_btf_needed"), "good");
  addKernel(test_support::bytesOf("no BTF"), "bad kernel");
  addKernel(kernel_.bytes(), "good kernel");
  const json document = answer();
  EXPECT_THAT(document.at("/objects/0/error"_json_pointer).get<std::string>(), HasSubstr("not an ELF file"));
  EXPECT_TRUE(document.at("/objects/0/reports"_json_pointer).empty());
  EXPECT_FALSE(document.at("/objects/1"_json_pointer).contains("error"));
  ASSERT_EQ(document.at("/objects/1/reports"_json_pointer).size(), 1U);
  EXPECT_EQ(document.at("/objects/1/reports/0/kernel"_json_pointer), "good kernel");
  EXPECT_EQ(document.at("/kernels/0/error"_json_pointer), "bad kernel: is neither BTF nor an ELF file");
}

/// `content` with `name`, wherever it is, by `other` of the same length.
std::vector<std::byte> renamed(std::vector<std::byte> content, std::string_view name, std::string_view other) {
  EXPECT_EQ(name.size(), other.size());
  const auto from = std::as_bytes(std::span(name));
  const auto to = std::as_bytes(std::span(other));
  std::size_t found = 0;
  for (auto at = content.begin(); (at = std::search(at, content.end(), from.begin(), from.end())) != content.end();) {
    at = std::ranges::copy(to, at).out;
    ++found;
  }
  EXPECT_GT(found, 0U);
  return content;
}

TEST_F(CheckJobTest, NamesOfTheObjectAreFitToBeShown) {
  addObject(renamed(object("fentry"), "do_nanosleep", "do_nano\x1b[2Jp"), "object");
  addKernel(kernel_.bytes(), "kernel");
  const std::string document = answer().dump();
  EXPECT_THAT(document, HasSubstr(R"(do_nano\\x1b[2Jp)"));
  EXPECT_THAT(document, Not(HasSubstr(R"(\u001b)")));
}

TEST_F(CheckJobTest, ModulesBelongToTheirKernel) {
  addObject(object("fentry"), "needs_a_function");
  BtfMaker module = BtfMaker::splitFrom(kernel_);
  module.function("do_nanosleep", module.prototype(0, {}));
  json& kernel = addKernel(kernel_.bytes(), "with a module");
  kernel["modules"] = {{{"btfFileDescriptor", send(module.bytes())}, {"name", "one"}},
                       {{"btfFileDescriptor", send(test_support::bytesOf("no BTF"))}, {"name", "bad"}}};
  addKernel(module.bytes(), "only a module");
  const json document = answer();
  EXPECT_NE(document.at("/objects/0/reports/0/verdict"_json_pointer), "fails");
  EXPECT_EQ(document.at("/kernels/0/modules"_json_pointer), 1);
  EXPECT_EQ(document.at("/kernels/0/leftOut"_json_pointer), json::array({"bad: is neither BTF nor an ELF file"}));
  EXPECT_THAT(document.at("/kernels/1/error"_json_pointer).get<std::string>(), HasSubstr("what a module adds"));
}

TEST_F(CheckJobTest, ObjectsTogetherHaveALimit) {
  const auto content = object("no_btf_needed");
  addObject(content, "fits");
  addObject(content, "does not fit");
  addKernel(kernel_.bytes(), "kernel");
  const json document = answer(content.size() * 3 / 2);
  EXPECT_FALSE(document.at("/objects/0"_json_pointer).contains("error"));
  EXPECT_THAT(document.at("/objects/1/error"_json_pointer).get<std::string>(), HasSubstr("limits.objectBytes"));
}

TEST_F(CheckJobTest, SoHasTheBtfOfAKernel) {
  const auto content = object("no_btf_needed");
  addObject(content, "fits");
  addKernel(std::vector<std::byte>(content.size() + 1), "does not fit");
  EXPECT_THAT(answer(content.size()).at("/kernels/0/error"_json_pointer).get<std::string>(),
              HasSubstr("limits.objectBytes"));
}

TEST_F(CheckJobTest, IndexesHaveToNameADescriptorOfTheirOwn) {
  addObject(object("no_btf_needed"), "object");
  addKernel(kernel_.bytes(), "kernel");
  for (const auto& [place, index] :
       {std::pair("/objects/0/objectFileDescriptor", 2), std::pair("/kernels/0/btfFileDescriptor", 0)}) {
    const json whole = request_;
    request_.at(json::json_pointer(place)) = index;
    const auto refused = run();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().error, "org.varlink.service.InvalidParameter") << place;
    request_ = whole;
  }
}

TEST_F(CheckJobTest, WithoutKernelBtfThereIsNoRunningKernel) {
  addObject(object("no_btf_needed"), "object");
  const auto refused = run();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error, kNoKernelBtf);
}

} // namespace
} // namespace btfd::loader
