#include "test_support.h"
#include "varlink/embedded.h"
#include "varlink/errors.h"
#include "varlink/system_service.h"

#include <cstdlib>

namespace btfd::varlink {
namespace {

using nlohmann::json;

class SystemService : public testing::Test {
 protected:
  void SetUp() override {
    server_.inLoop([this] {
      SystemServiceHooks hooks;
      hooks.reload = [this]() -> Result<void> {
        if (broken_) {
          return fail("line 3: nonsense");
        }
        ++reloads_;
        return {};
      };
      hooks.setLogLevel = [this](int level) { level_ = level; };
      hooks.logLevel = [this] { return level_; };
      ASSERT_TRUE(addSystemService(server_.service(), std::move(hooks)));
      ASSERT_TRUE(server_.service().verify());
    });
  }

  Reply call(const char* method, const json& parameters = nullptr) {
    auto client = server_.client();
    auto reply = client.call(std::string("io.systemd.service.") + method, parameters);
    EXPECT_TRUE(reply);
    return reply ? std::move(*reply) : Reply{};
  }

  bool broken_ = false;
  int reloads_ = 0;
  int level_ = 6;
  test::TestServer server_;
};

TEST_F(SystemService, Pings) {
  EXPECT_EQ(call("Ping").error, "");
}

TEST_F(SystemService, Reloads) {
  EXPECT_EQ(call("Reload").error, "");
  EXPECT_EQ(reloads_, 1);
  broken_ = true;
  const auto reply = call("Reload");
  EXPECT_EQ(reply.error, "io.systemd.service.ReloadFailed");
  EXPECT_EQ(reply.parameters, (json{{"message", "line 3: nonsense"}}));
}

TEST_F(SystemService, SetsAndTellsTheLogLevel) {
  EXPECT_EQ(call("GetLogLevel").parameters, (json{{"level", 6}}));
  EXPECT_EQ(call("SetLogLevel", json{{"level", 7}}).error, "");
  EXPECT_EQ(call("GetLogLevel").parameters, (json{{"level", 7}}));
  for (const int level : {-1, 8}) {
    EXPECT_EQ(call("SetLogLevel", json{{"level", level}}).error, errors::kInvalidParameter);
  }
  EXPECT_EQ(call("GetLogLevel").parameters, (json{{"level", 7}}));
}

TEST_F(SystemService, TellsTheEnvironment) {
  ASSERT_EQ(::setenv("BTFD_TEST_VARIABLE", "a=b", 1), 0);
  const auto reply = call("GetEnvironment");
  EXPECT_NE(std::ranges::find(reply.parameters.at("environment"), "BTFD_TEST_VARIABLE=a=b"),
            reply.parameters.at("environment").end());
  ASSERT_EQ(::setenv("BTFD_TEST_VARIABLE", "\xff", 1), 0);
  EXPECT_EQ(call("GetEnvironment").error, "io.systemd.service.InconsistentEnvironment");
  ASSERT_EQ(::unsetenv("BTFD_TEST_VARIABLE"), 0);
}

} // namespace
} // namespace btfd::varlink
