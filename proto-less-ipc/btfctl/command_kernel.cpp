#include "btfctl/command.h"
#include "btfctl/daemon.h"
#include "btfctl/table.h"
#include "btfctl/views.h"

#include <CLI/CLI.hpp>

#include <utility>

namespace btfd::btfctl {
namespace {

class KernelCommand : public Command {
 public:
  explicit KernelCommand(CLI::App& parent)
      : Command(parent, "kernel", "Show the kernel BTF that the daemon keeps resident",
                "  btfctl kernel\n"
                "  btfctl kernel --json | jq .spec.privateBytes\n") {}

  [[nodiscard]] std::string subject() const override { return "kernel"; }

  Outcome<int> run(const Context& context) override {
    auto daemon = Daemon::connect(context.socket);
    if (!daemon) {
      return std::unexpected(std::move(daemon).error());
    }
    auto reply = daemon->call("DescribeKernel", nlohmann::json::object());
    if (!reply) {
      return std::unexpected(std::move(reply).error());
    }
    context.print(*reply, kernelView(*reply, terminalWidth()));
    return 0;
  }
};

} // namespace

std::unique_ptr<Command> kernelCommand(CLI::App& parent) {
  return std::make_unique<KernelCommand>(parent);
}

} // namespace btfd::btfctl
