#include "btfctl/command.h"
#include "btfctl/daemon.h"
#include "btfctl/duration.h"
#include "btfctl/fields.h"
#include "btfctl/signal_queue.h"
#include "btfctl/table.h"
#include "btfctl/views.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <utility>

#include <poll.h>

namespace btfd::btfctl {
namespace {

using nlohmann::json;

class StatsCommand : public Command {
 public:
  explicit StatsCommand(CLI::App& parent)
      : Command(
            parent, "stats", "Show how often an object's programs run, and how long that takes",
            "  btfctl stats tcpconnect\n"
            "      what happens in one second\n"
            "  btfctl stats tcpconnect --interval 10s\n"
            "The kernel counts while this command runs, which costs each run of every program some nanoseconds.\n") {
    argument("OBJECT", object_, "Id or name of the object");
    option("--interval", "DURATION", interval_, "How long to count: 500ms, 10s, 2min... (1s)");
  }

  [[nodiscard]] std::string subject() const override { return "stats " + object_; }

  Outcome<int> run(const Context& context) override {
    auto interval = parseDuration(interval_);
    if (!interval || interval->count() > std::numeric_limits<int>::max()) {
      return failed(ExitStatus::Usage, "--interval: " + (interval ? "is too long" : interval.error().message));
    }
    auto signals = SignalQueue::open();
    if (!signals) {
      return failed(ExitStatus::Failed, signals.error().message);
    }
    auto daemon = Daemon::connect(context.socket);
    if (!daemon) {
      return std::unexpected(std::move(daemon).error());
    }
    auto id = findObject(*daemon, object_);
    if (!id) {
      return std::unexpected(std::move(id).error());
    }
    const json parameters{{"objectId", *id}, {"statistics", true}};
    auto before = daemon->call("Describe", parameters);
    if (!before) {
      return std::unexpected(std::move(before).error());
    }
    const auto begin = std::chrono::steady_clock::now();
    pollfd signal{.fd = signals->fd().get(), .events = POLLIN, .revents = 0};
    ::poll(&signal, 1, static_cast<int>(interval->count())); // a signal ends it early; what was counted is shown
    auto after = daemon->call("Describe", parameters);
    if (!after) {
      return std::unexpected(std::move(after).error());
    }
    const auto counted =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
    const json& statistics = field(*after, "statistics");
    json document{
        {"statistics", statistics}, {"before", field(*before, "statistics")}, {"intervalUSec", counted.count()}};
    context.print(document, statisticsView(document, terminalWidth()));
    return 0;
  }

 private:
  std::string object_;
  std::string interval_ = "1s";
};

} // namespace

std::unique_ptr<Command> statsCommand(CLI::App& parent) {
  return std::make_unique<StatsCommand>(parent);
}

} // namespace btfd::btfctl
