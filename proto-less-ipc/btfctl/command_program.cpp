#include "btfctl/command.h"
#include "btfctl/daemon.h"
#include "btfctl/views.h"

#include <CLI/CLI.hpp>

#include <utility>

namespace btfd::btfctl {
namespace {

using nlohmann::json;

class ProgramCommand : public Command {
 public:
  explicit ProgramCommand(CLI::App& parent)
      : Command(parent, "prog", "List the instructions of a program, with its source lines and CO-RE relocations",
                "  btfctl prog tcpconnect on_connect\n"
                "  btfctl prog 7 on_connect --code\n"
                "      with the bytes of each instruction\n") {
    argument("OBJECT", object_, "Id or name of the object");
    argument("PROGRAM", program_, "Name of the program, or of another function of the object");
    flag("--code", code_, "Show the bytes, too");
  }

  [[nodiscard]] std::string subject() const override { return "prog " + object_ + " " + program_; }

  Outcome<int> run(const Context& context) override {
    auto daemon = Daemon::connect(context.socket);
    if (!daemon) {
      return std::unexpected(std::move(daemon).error());
    }
    auto id = findObject(*daemon, object_);
    if (!id) {
      return std::unexpected(std::move(id).error());
    }
    auto reply = daemon->call("Disassemble", {{"objectId", *id}, {"program", program_}});
    if (!reply) {
      return std::unexpected(std::move(reply).error());
    }
    context.print(*reply, disassemblyView(*reply, code_));
    return 0;
  }

 private:
  std::string object_;
  std::string program_;
  bool code_ = false;
};

} // namespace

std::unique_ptr<Command> programCommand(CLI::App& parent) {
  return std::make_unique<ProgramCommand>(parent);
}

} // namespace btfd::btfctl
