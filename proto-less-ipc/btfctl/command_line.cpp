#include "btfctl/command_line.h"

#include "btfctl/command.h"
#include "btfctl/failure_text.h"
#include "btfctl/text.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

namespace btfd::btfctl {
namespace {

constexpr const char* kDefaultSocket = "/run/btfd/io.btfd.Loader";

constexpr const char* kExamples = "Examples:\n"
                                  "  btfctl load tcpconnect.o --attach-all     load, attach, hold until Ctrl-C\n"
                                  "  btfctl list                               what is loaded\n"
                                  "  btfctl show tcpconnect --json             one object, for programs\n"
                                  "  btfctl check *.o --kernel btf/            will they load on these kernels?\n"
                                  "  btfctl relocate x.o --kernel k.btf -o y.o for a kernel that has no BTF\n"
                                  "  btfctl load --help                        more about a command\n\n";

/// Takes off `arguments` the command that follows `--exec ... --`. Without --exec, -- has its usual meaning: no options
/// after it.
std::vector<std::string> takeExec(std::vector<std::string>& arguments) {
  const auto separator = std::ranges::find(arguments, "--");
  if (separator == arguments.end() || std::find(arguments.begin(), separator, "--exec") == separator) {
    return {};
  }
  std::vector<std::string> command(std::next(separator), arguments.end());
  arguments.erase(separator, arguments.end());
  return command;
}

/// --help without what CLI11 adds to each option: defaults, environment, exclusions. The descriptions say what matters.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(kDescriptionColumn); }

  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_name().empty() ? "" : " " + option->get_type_name();
  }

 private:
  static constexpr std::size_t kDescriptionColumn = 30;
};

void declareGlobals(CLI::App& app, Context& context) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.fallthrough(); // so that they may also stand behind the command
  app.add_option("--socket", context.socket,
                 std::string("The daemon's socket; else $BTFD_SOCKET, or ") + kDefaultSocket)
      ->type_name("PATH")
      ->envname("BTFD_SOCKET");
  app.add_flag("--json", context.json, "Print JSON for programs: the daemon's reply, or its error");
  app.add_flag("--verbose,-v", context.verbose, "Show all of the verifier's and of libbpf's log with errors");
  app.set_version_flag("--version", "btfctl " BTFD_VERSION);
  app.require_subcommand(1);
  app.footer(kExamples + exitStatusHelp());
}

/// The apps that the command line names, the whole program first: `btfctl btf minimize`.
std::vector<const CLI::App*> chosenApps(const CLI::App& app) {
  std::vector<const CLI::App*> apps{&app};
  while (!apps.back()->get_subcommands().empty()) {
    apps.push_back(apps.back()->get_subcommands().front());
  }
  return apps;
}

/// What CLI11 says, with a guess if the command's name is what it does not know.
std::string usageMessage(std::span<const CLI::App* const> chosen, const CLI::ParseError& error,
                         std::span<const std::string> arguments) {
  const auto commands = chosen.back()->get_subcommands(nullptr);
  std::vector<std::string> words;
  std::ranges::copy_if(arguments, std::back_inserter(words),
                       [](const std::string& text) { return !text.starts_with('-'); });
  if (commands.empty() || words.size() < chosen.size()) {
    return error.what();
  }
  std::vector<std::string> names;
  std::ranges::transform(commands, std::back_inserter(names),
                         [](const CLI::App* command) { return command->get_name(); });
  const std::string& word = words[chosen.size() - 1];
  return "there is no command '" + word + "'" + didYouMean(word, names);
}

/// Whether --json is among the options: CLI11 sets flags only once all is parsed.
bool wantsJson(std::span<const std::string> arguments) {
  const auto end = std::ranges::find(arguments, "--");
  return std::find(arguments.begin(), end, "--json") != end;
}

int reportUsage(const CLI::App& app, const CLI::ParseError& error, std::span<const std::string> arguments,
                const Context& context) {
  const auto chosen = chosenApps(app);
  const std::string message = usageMessage(chosen, error, arguments);
  if (wantsJson(arguments)) {
    context.out << failureDocument(failed(ExitStatus::Usage, message).error()) << std::flush;
    return static_cast<int>(ExitStatus::Usage);
  }
  std::string command;
  for (const CLI::App* each : chosen) {
    command += (command.empty() ? "" : " ") + each->get_name();
  }
  context.errors << command << ": " << message << "\nTry: " << command << " --help"
                 << "\n"
                 << std::flush;
  return static_cast<int>(ExitStatus::Usage);
}

int report(const Failure& failure, const Command& command, const Context& context) {
  if (context.json) {
    context.out << failureDocument(failure) << std::flush;
  } else {
    context.errors << failureText(failure, command.subject(), context.verbose) << std::flush;
  }
  return static_cast<int>(failure.status);
}

int run(Command& command, const Context& context) {
  const auto status = command.run(context);
  if (!status) {
    return report(status.error(), command, context);
  }
  if (!context.out) { // a full disk, for one: who reads the output must not take it for whole
    context.errors << "btfctl: " << command.subject() << ": cannot write to standard output" << "\n" << std::flush;
    return static_cast<int>(ExitStatus::Failed);
  }
  return *status;
}

} // namespace

int runCommandLine(std::vector<std::string> arguments, std::ostream& out, std::ostream& errors) {
  Context context{.socket = kDefaultSocket, .exec = takeExec(arguments), .out = out, .errors = errors};
  CLI::App app("Loads eBPF objects through btfd, the loader daemon, and shows what is loaded.", "btfctl");
  declareGlobals(app, context);
  std::vector<std::unique_ptr<Command>> commands;
  for (const auto make : {loadCommand, unloadCommand, attachCommand, updateCommand, detachCommand, readCommand,
                          listCommand, showCommand, eventsCommand, statsCommand, programCommand, checkCommand,
                          relocateCommand, minimizeCommand, kernelCommand, monitorCommand}) {
    commands.push_back(make(app));
  }
  for (std::unique_ptr<Command>& command : mapCommands(app)) {
    commands.push_back(std::move(command));
  }
  try { // CLI11 reports by exception, --help included
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    return asked ? app.exit(error, out, errors) : reportUsage(app, error, arguments, context);
  }
  const auto chosen = std::ranges::find_if(commands, &Command::chosen);
  return run(**chosen, context);
}

} // namespace btfd::btfctl
