#pragma once

#include "btfctl/outcome.h"

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace btfd::btfctl {

/// What all commands get: the options before or behind the command's name, and where to write.
struct Context {
  std::string socket;
  bool json = false;
  bool verbose = false;
  /// What a command after `--exec --` is made of.
  std::vector<std::string> exec;
  std::ostream& out;
  std::ostream& errors;

  /// Writes `document` for programs or `text` for people, and flushes it.
  void print(const nlohmann::json& document, const std::string& text) const;

  /// Tells a person what goes on, beside the result. Programs that asked for JSON are told nothing.
  void note(const std::string& text) const;
};

/// One subcommand. It declares its options when it is made; then, if it is the chosen one, it is run once.
class Command {
 public:
  virtual ~Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  /// Whether the command line names this one.
  [[nodiscard]] bool chosen() const { return app_->parsed(); }

  /// What it does to what, as "load xyz.o"; errors begin with it.
  [[nodiscard]] virtual std::string subject() const = 0;

  /// Does it; gives the exit status.
  virtual Outcome<int> run(const Context& context) = 0;

 protected:
  Command(CLI::App& parent, const std::string& name, const std::string& description, const std::string& examples);

  /// A positional argument that must be given.
  CLI::Option* argument(const std::string& name, std::string& value, const std::string& description);
  /// A positional argument that may be left out.
  CLI::Option* optionalArgument(const std::string& name, std::string& value, const std::string& description);
  /// An option with one value, shown as `form` in --help.
  CLI::Option* option(const std::string& name, const std::string& form, std::string& value,
                      const std::string& description);
  /// An option that may be given repeatedly, with one value each time.
  CLI::Option* repeatable(const std::string& name, const std::string& form, std::vector<std::string>& values,
                          const std::string& description);
  CLI::Option* flag(const std::string& name, bool& value, const std::string& description);

  [[nodiscard]] CLI::App& app() { return *app_; }

 private:
  CLI::App* app_;
};

std::unique_ptr<Command> loadCommand(CLI::App& parent);
std::unique_ptr<Command> unloadCommand(CLI::App& parent);
std::unique_ptr<Command> attachCommand(CLI::App& parent);
std::unique_ptr<Command> updateCommand(CLI::App& parent);
std::unique_ptr<Command> detachCommand(CLI::App& parent);
std::unique_ptr<Command> readCommand(CLI::App& parent);
std::unique_ptr<Command> listCommand(CLI::App& parent);
std::unique_ptr<Command> showCommand(CLI::App& parent);
std::unique_ptr<Command> checkCommand(CLI::App& parent);
std::unique_ptr<Command> relocateCommand(CLI::App& parent);
/// `btf minimize`.
std::unique_ptr<Command> minimizeCommand(CLI::App& parent);
/// `map dump` and the like.
std::vector<std::unique_ptr<Command>> mapCommands(CLI::App& parent);
std::unique_ptr<Command> eventsCommand(CLI::App& parent);
std::unique_ptr<Command> programCommand(CLI::App& parent);
std::unique_ptr<Command> statsCommand(CLI::App& parent);
std::unique_ptr<Command> kernelCommand(CLI::App& parent);
std::unique_ptr<Command> monitorCommand(CLI::App& parent);

} // namespace btfd::btfctl
