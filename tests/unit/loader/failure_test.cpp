#include "loader/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace btfd::loader {
namespace {

TEST(ErrnoName, IsTheSymbol) {
  EXPECT_EQ(errnoName(EPERM), "EPERM");
  EXPECT_EQ(errnoName(E2BIG), "E2BIG");
}

TEST(ErrnoName, OfWhatHasNoneIsTheNumber) {
  EXPECT_EQ(errnoName(4095), "4095");
  EXPECT_EQ(errnoName(-1), "-1");
}

TEST(Failure, InvalidParameterHasThePathAloneAsParameter) {
  const Outcome<void> outcome = invalidParameter("maps.counts.maxEntries", "is too large");
  EXPECT_EQ(outcome.error().error, "org.varlink.service.InvalidParameter");
  EXPECT_EQ(outcome.error().parameters,
            nlohmann::json({{"parameter", "maps.counts.maxEntries"}, {"reason", "is too large"}}));
}

TEST(Describe, IsTheMessageWhereThereIsOne) {
  EXPECT_EQ(describe({"io.btfd.LoadFailed", {{"message", "the kernel refuses it"}}}), "the kernel refuses it");
}

TEST(Describe, OfAnInvalidParameterIsWhatIsWrongWithIt) {
  const Outcome<void> outcome = invalidParameter("target.interface", "there is no network interface 'x'");
  EXPECT_EQ(describe(outcome.error()), "target.interface: there is no network interface 'x'");
  EXPECT_EQ(describe({"io.btfd.Busy", nlohmann::json::object()}), "io.btfd.Busy");
}

TEST(Failure, InvalidObjectSaysWhy) {
  const Outcome<void> outcome = invalidObject("it is empty");
  EXPECT_EQ(outcome.error().error, "io.btfd.InvalidObject");
  EXPECT_EQ(outcome.error().parameters, nlohmann::json({{"message", "it is empty"}}));
}

TEST(Failure, NoSuchNameOffersWhatMayHaveBeenMeant) {
  const Outcome<void> outcome = noSuchName("program", "on_exex", {"on_exec", "something_else"});
  EXPECT_EQ(outcome.error().error, "io.btfd.NoSuchName");
  EXPECT_EQ(outcome.error().parameters,
            nlohmann::json({{"message", "the object has no program 'on_exex'; did you mean 'on_exec'?"},
                            {"kind", "program"},
                            {"name", "on_exex"},
                            {"nearMisses", {"on_exec"}}}));
}

TEST(Failure, NoSuchNameOffersNothingFarAway) {
  const Outcome<void> outcome = noSuchName("map", "events", {"something_else"});
  EXPECT_EQ(outcome.error().parameters.at("message"), "the object has no map 'events'");
  EXPECT_EQ(outcome.error().parameters.at("nearMisses"), nlohmann::json::array());
}

TEST(Shortened, CutsTextsThatNobodyReadsWhereverTheyAre) {
  const std::string huge(1'000'000, 'x');
  nlohmann::json parameters{{"message", huge}, {"errno", 22}, {"verifierLog", huge}, {"libbpfLog", {"short", huge}}};
  parameters["relocations"] = {{{"access", huge}}};
  const auto failure = shortened({"io.btfd.LoadFailed", std::move(parameters)});
  EXPECT_EQ(failure.error, "io.btfd.LoadFailed");
  EXPECT_LT(failure.parameters.at("message").get_ref<const std::string&>().size(), 10'000U);
  EXPECT_TRUE(failure.parameters.at("message").get_ref<const std::string&>().ends_with("x..."));
  EXPECT_LT(failure.parameters.at("libbpfLog").at(1).get_ref<const std::string&>().size(), 10'000U);
  EXPECT_EQ(failure.parameters.at("libbpfLog").at(0), "short");
  EXPECT_LT(failure.parameters.at("relocations").at(0).at("access").get_ref<const std::string&>().size(), 10'000U);
  EXPECT_EQ(failure.parameters.at("errno"), 22);
  EXPECT_EQ(failure.parameters.at("verifierLog"), huge) << "that has a limit of its own";
}

TEST(NoSuchName, DoesNotRepeatAnEndlessName) {
  const std::string endless(16'000'000, 'x');
  const auto failure = noSuchName("program", endless, {"on_exec"}).error();
  EXPECT_LT(failure.parameters.dump().size(), 20'000U);
}

} // namespace
} // namespace btfd::loader
