#include "btfctl/command.h"
#include "btfctl/daemon.h"
#include "btfctl/fields.h"
#include "btfctl/views.h"

#include <CLI/CLI.hpp>

#include <csignal>
#include <utility>

#include <unistd.h>

namespace btfd::btfctl {
namespace {

/// Makes SIGINT and SIGTERM the normal end of this process. What was printed is flushed by then, line by line, and the
/// daemon sees the connection close, so nothing is left to do.
void endNormallyOnSignal() {
  struct sigaction action{};
  action.sa_handler = [](int) { ::_exit(static_cast<int>(ExitStatus::Done)); };
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

class MonitorCommand : public Command {
 public:
  explicit MonitorCommand(CLI::App& parent)
      : Command(parent, "monitor", "Print what happens as it happens, until Ctrl-C",
                "  btfctl monitor\n"
                "      a line for each event: local time, who, what, and the object's id and name\n"
                "  btfctl monitor --json | jq --unbuffered 'select(.event.kind == \"loadFailed\")'\n"
                "      one JSON object a line\n") {}

  [[nodiscard]] std::string subject() const override { return "monitor"; }

  Outcome<int> run(const Context& context) override {
    endNormallyOnSignal();
    auto daemon = Daemon::connect(context.socket);
    if (!daemon) {
      return std::unexpected(std::move(daemon).error());
    }
    auto ended = daemon->stream("Monitor", nlohmann::json::object(), [&](const nlohmann::json& reply) {
      context.print(reply, eventView(field(reply, "event")) + "\n");
    });
    if (!ended) {
      return std::unexpected(std::move(ended).error());
    }
    return failed(ExitStatus::Unreachable, "the daemon ended the stream");
  }
};

} // namespace

std::unique_ptr<Command> monitorCommand(CLI::App& parent) {
  return std::make_unique<MonitorCommand>(parent);
}

} // namespace btfd::btfctl
