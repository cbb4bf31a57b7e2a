#include "service/kernel_btf.h"
#include "test_support/files.h"

#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <functional>

namespace btfd::service {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::byte> rawBytes(const struct ::btf& btf) {
  std::uint32_t size = 0;
  const auto* data = static_cast<const std::byte*>(btf__raw_data(&btf, &size));
  return {data, data + size};
}

class KernelBtfTest : public testing::Test {
 protected:
  KernelBtfTest() {
    spdlog::set_level(spdlog::level::off);
    btf__add_struct(vmlinux_.get(), "task", 4);
    kernelBtf_.setHooks({.buildBegins = [this] { events_.emplace_back("begins"); },
                         .buildEnded = [this] { events_.emplace_back("ended"); },
                         .built = [this](const auto&) { events_.emplace_back("built"); }});
  }

  void writeVmlinux() { test_support::writeFile(directory_ / "vmlinux", rawBytes(*vmlinux_)); }

  void addModule(const std::string& name) {
    const btf::BtfHandle module(btf__new_empty_split(vmlinux_.get()));
    btf__add_struct(module.get(), name.c_str(), 4);
    test_support::writeFile(directory_ / name, rawBytes(*module));
  }

  void ensure() {
    kernelBtf_.ensure([this](Result<std::shared_ptr<const btf::KernelSpec>> spec) {
      answers_.push_back(spec ? "generation " + std::to_string((*spec)->generation()) : spec.error().message);
    });
  }

  void runUntil(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "nothing happened";
      context_.restart();
      context_.run_for(std::chrono::milliseconds(5));
    }
  }

  void runFor(std::chrono::milliseconds duration) {
    context_.restart();
    context_.run_for(duration);
  }

  test_support::TemporaryDirectory directory_;
  btf::BtfHandle vmlinux_{btf__new_empty()};
  boost::asio::io_context context_;
  std::vector<std::string> events_;
  std::vector<std::string> answers_;
  KernelBtf kernelBtf_{context_, {.directory = directory_.path(), .fallbackPath = {}}};
};

TEST_F(KernelBtfTest, NothingIsParsedBeforeSomebodyNeedsIt) {
  writeVmlinux();
  runFor(std::chrono::milliseconds(10));
  EXPECT_EQ(kernelBtf_.buildCount(), 0U);
  EXPECT_EQ(kernelBtf_.spec(), nullptr);
  EXPECT_THAT(kernelBtf_.reason(), HasSubstr("on-demand"));
}

TEST_F(KernelBtfTest, ManyWhoNeedItAtOnceCauseOneParse) {
  writeVmlinux();
  for (int i = 0; i < 10; ++i) {
    ensure();
  }
  EXPECT_TRUE(answers_.empty());
  runUntil([&] { return answers_.size() == 10; });
  runFor(std::chrono::milliseconds(50));
  EXPECT_EQ(kernelBtf_.buildCount(), 1U);
  EXPECT_THAT(answers_, testing::Each("generation 1"));
  EXPECT_THAT(events_, ElementsAre("begins", "built", "ended"));
  EXPECT_EQ(kernelBtf_.reason(), "");
  ensure();
  EXPECT_EQ(answers_.size(), 11U) << "now it is there at once";
}

TEST_F(KernelBtfTest, BuildNowBuildsInTheCallersThread) {
  writeVmlinux();
  ASSERT_TRUE(kernelBtf_.buildNow());
  ASSERT_NE(kernelBtf_.spec(), nullptr);
  EXPECT_EQ(kernelBtf_.spec()->generation(), 1U);
  EXPECT_TRUE(events_.empty());
}

TEST_F(KernelBtfTest, AFailureIsToldAndRememberedForAWhile) {
  ensure();
  ensure();
  runUntil([&] { return answers_.size() == 2; });
  EXPECT_THAT(answers_, testing::Each(HasSubstr("shows no BTF")));
  EXPECT_THAT(events_, ElementsAre("begins", "ended"));
  EXPECT_THAT(kernelBtf_.reason(), HasSubstr("shows no BTF"));
  ensure();
  EXPECT_EQ(answers_.size(), 3U);
  EXPECT_EQ(kernelBtf_.buildCount(), 1U);
}

TEST_F(KernelBtfTest, AModuleThatComesMakesANewGeneration) {
  writeVmlinux();
  ASSERT_TRUE(kernelBtf_.buildNow());
  const auto old = kernelBtf_.spec();
  addModule("driver");
  for (int i = 0; i < 5; ++i) {
    kernelBtf_.modulesChanged(); // they come in swarms
  }
  runUntil([&] { return kernelBtf_.spec() != old; });
  EXPECT_EQ(kernelBtf_.spec()->generation(), 2U);
  EXPECT_NE(kernelBtf_.spec()->findModule("driver"), nullptr);
  EXPECT_EQ(old->findModule("driver"), nullptr) << "the old generation is what it was";
  EXPECT_EQ(kernelBtf_.buildCount(), 2U);
}

TEST_F(KernelBtfTest, AModuleThatGoesMakesANewGeneration) {
  writeVmlinux();
  addModule("driver");
  ASSERT_TRUE(kernelBtf_.buildNow());
  std::filesystem::remove(directory_ / "driver");
  kernelBtf_.modulesChanged();
  runUntil([&] { return kernelBtf_.buildCount() == 2 && kernelBtf_.spec()->generation() == 2; });
  EXPECT_TRUE(kernelBtf_.spec()->modules().empty());
}

TEST_F(KernelBtfTest, NoChangeIsNoNewGeneration) {
  writeVmlinux();
  addModule("driver");
  ASSERT_TRUE(kernelBtf_.buildNow());
  kernelBtf_.modulesChanged();
  runFor(std::chrono::milliseconds(400));
  EXPECT_EQ(kernelBtf_.buildCount(), 1U);
}

TEST_F(KernelBtfTest, ModulesAloneCauseNoParse) {
  writeVmlinux();
  kernelBtf_.modulesChanged();
  runFor(std::chrono::milliseconds(400));
  EXPECT_EQ(kernelBtf_.buildCount(), 0U);
}

} // namespace
} // namespace btfd::service
