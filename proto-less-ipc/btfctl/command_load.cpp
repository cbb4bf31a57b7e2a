#include "btfctl/command.h"
#include "btfctl/daemon.h"
#include "btfctl/fields.h"
#include "btfctl/hold.h"
#include "btfctl/load_request.h"
#include "btfctl/object_watch.h"
#include "btfctl/part_options.h"
#include "btfctl/signal_queue.h"
#include "btfctl/table.h"
#include "btfctl/target.h"
#include "btfctl/views.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

namespace btfd::btfctl {
namespace {

using nlohmann::json;

constexpr const char* kExamples =
    "  btfctl load tcpconnect.o --attach-all\n"
    "      loads the object, attaches each program by its section name, and stays until Ctrl-C\n"
    "  btfctl load filter.o --attach drop_udp=interface:veth0,xdpMode:generic\n"
    "      attaches program drop_udp to an interface\n"
    "  btfctl load profile.o --attach sample=perf:software/cpu-clock@99hz --set target_pid=1234\n"
    "      sets a global variable before the object is loaded; the value is JSON\n"
    "  btfctl load trace.o --reuse events=/sys/fs/bpf/events --max-entries state=65536\n"
    "  btfctl load trace.o --map state=type:lru_hash,pinPath:state --kconfig CONFIG_HZ=250\n"
    "  btfctl load trace.o --dry-run --log-level 1\n"
    "      asks the verifier only: nothing stays\n"
    "  btfctl load trace.o --attach-all --exec -- ping -c 3 localhost\n"
    "      runs a command while the object is loaded and ends with its exit status\n"
    "  gunzip < trace.o.gz | btfctl load - --json\n"
    "      prints a line of JSON and holds the object; a second line is an error: the object went\n";

/// The shell's exit statuses for a command that is not there, and for one that cannot be run.
constexpr int kCommandNotFound = 127;
constexpr int kCommandNotRun = 126;

class LoadCommand : public Command {
 public:
  explicit LoadCommand(CLI::App& parent)
      : Command(parent, "load", "Load an object, and hold it: it is unloaded when this command ends",
                kExamples + ("\n" + targetHelp()) + partOptionsHelp()) {
    argument("OBJECT", options_.object, "The object file; - is standard input");
    option("--name", "NAME", options_.name, "What to call it; else as its file, without .o or .bpf.o");
    repeatable("--label", "KEY=VALUE", options_.labels, "A label to select it by");
    repeatable("--attach", "PROGRAM[=TARGET]", options_.attach,
               "Attach a program: by its section name, or to TARGET (see below)");
    flag("--attach-all", attachAll_, "Attach all programs that no --attach names, by their section names");
    repeatable("--made-for", "PROGRAM=FUNCTION", options_.targets,
               "What an fentry, lsm or the like program is for, instead of what its section says; or for freplace "
               "PROGRAM=OBJECT-ID:PROGRAM[:FUNCTION], a loaded program");
    repeatable("--enable", "PROGRAM", options_.enable, "Load it even if its section says SEC(\"?...\")");
    repeatable("--disable", "PROGRAM", options_.disable, "Do not load it");
    repeatable("--set", "VARIABLE=JSON", options_.variables, "The value of a global variable");
    repeatable("--max-entries", "MAP=NUMBER", options_.maxEntries, "The size of a map");
    repeatable("--map", "MAP=FIELD:VALUE,...", options_.maps, "Other options of a map (see below)");
    repeatable("--program", "PROGRAM=FIELD:VALUE,...", options_.programs, "Other options of a program (see below)");
    repeatable("--kconfig", "CONFIG_NAME=VALUE", options_.kconfig,
               "A value for a __kconfig variable, as in a kernel's .config");
    repeatable("--reuse", "MAP=PATH|ID", options_.reuse, "Use an existing map: pinned at PATH, or by kernel id");
    option("--kernel-btf", "FILE", options_.kernelBtf,
           "Relocate for this BTF instead of the running kernel's (a kernel without any; better BTF)");
    app()
        .add_option("--log-level", options_.logLevel, "Ask for the verifier's log: 1, 2 (verbose), 4 (statistics)")
        ->type_name("BITS")
        ->check(CLI::Range(0, 7).description(""));
    option("--deadline", "DURATION", options_.deadline, "Give up after 500ms, 10s, 2min...");
    CLI::Option* dryRun =
        flag("--dry-run", options_.dryRun, "Load and verify, and look at what --attach names; then drop everything");
    CLI::Option* stay = flag("--stay", stay_, "Hold the object until SIGINT or SIGTERM; this is the default");
    CLI::Option* exec =
        flag("--exec", exec_, "Hold the object while the command after -- runs; $BTFD_OBJECT is the object's id");
    stay->excludes(exec, dryRun);
    exec->excludes(dryRun);
    dryRun->excludes(app().get_option("--attach-all"));
  }

  [[nodiscard]] std::string subject() const override {
    return "load " + (options_.object == "-" ? "standard input" : options_.object);
  }

  Outcome<int> run(const Context& context) override {
    if (exec_ && context.exec.empty()) {
      return failed(ExitStatus::Usage, "--exec needs a command after --, as in: --exec -- sleep 10");
    }
    auto request = this->request();
    if (!request) {
      return std::unexpected(std::move(request).error());
    }
    auto daemon = Daemon::connect(context.socket);
    if (!daemon) {
      return std::unexpected(std::move(daemon).error());
    }
    auto reply = load(*daemon, std::move(*request), context);
    if (!reply) {
      return std::unexpected(std::move(reply).error());
    }
    if (options_.dryRun) {
      show(*reply, context);
      return 0;
    }
    // Before anything is printed: who has read the object's id may end this process at once, and in good order.
    auto signals = SignalQueue::open();
    if (!signals) {
      return failed(ExitStatus::Failed, signals.error().message);
    }
    const json id = field(field(*reply, "object"), "id");
    watch_ = ObjectWatch::begin(context.socket, numberField(field(*reply, "object"), "id"));
    show(*reply, context);
    return exec_ ? runWhileHeld(*daemon, id, std::move(*signals), context)
                 : hold(*daemon, id, std::move(*signals), context);
  }

 private:
  [[nodiscard]] Outcome<LoadRequest> request() const {
    auto parameters = loadParameters(options_);
    if (!parameters) {
      return misused(parameters.error());
    }
    auto maps = reusedMaps(options_);
    if (!maps) {
      return misused(maps.error());
    }
    auto request = withDescriptors(std::move(*parameters), options_.object, *maps, options_.kernelBtf);
    if (!request) {
      const bool noSuchMap = request.error().code == ENOENT && request.error().message.starts_with("--reuse");
      return failed(noSuchMap ? ExitStatus::NotFound : ExitStatus::Failed, request.error().message);
    }
    return std::move(*request);
  }

  /// Takes the request, so that its descriptors (a copy of the object, maps) are closed once the daemon has them.
  Outcome<json> load(Daemon& daemon, LoadRequest request, const Context& context) const {
    auto reply = daemon.call("Load", request.parameters, request.descriptors);
    if (!reply || !attachAll_) {
      return reply;
    }
    const json& object = field(*reply, "object");
    if (field(object, "programs").empty()) {
      unload(daemon, field(object, "id"));
      return failed(ExitStatus::Failed, "--attach-all has nothing to attach: no program of the object is loaded; "
                                        "--enable loads one whose section says SEC(\"?...\")");
    }
    if (auto attached = attachRest(daemon, object, request.parameters, context); !attached) {
      unload(daemon, field(object, "id"));
      return std::unexpected(std::move(attached).error());
    }
    auto described = daemon.call("Describe", {{"objectId", field(object, "id")}});
    if (described) {
      (*reply)["object"] = field(*described, "object");
      return reply;
    }
    return described;
  }

  /// Attaches by its section name each program of `object` that --attach has not attached.
  static Outcome<void> attachRest(Daemon& daemon, const json& object, const json& loadParameters,
                                  const Context& context) {
    const json& links = field(object, "links");
    for (const json& program : field(object, "programs")) {
      const json& name = field(program, "name");
      const bool attached =
          std::ranges::any_of(links, [&](const json& link) { return field(link, "program") == name; });
      if (attached) {
        continue;
      }
      json parameters{{"objectId", field(object, "id")}, {"program", name}};
      if (loadParameters.contains("deadlineMs")) {
        parameters["deadlineMs"] = loadParameters["deadlineMs"];
      }
      if (auto reply = daemon.call("Attach", parameters); !reply) {
        context.note("the object was loaded, but program " + textField(program, "name") +
                     " could not be attached: it is unloaded again");
        reply.error().parameters.emplace("program", name); // not all of the daemon's errors say it
        return std::unexpected(std::move(reply).error());
      }
    }
    return {};
  }

  /// With --exec, standard output is the command's: a person finds the tables on standard error.
  void show(const json& reply, const Context& context) const {
    const std::string text =
        objectView(field(reply, "object"), terminalWidth()) + verifierLogsView(field(reply, "verifierLogs"));
    if (exec_ && !context.json) {
      context.errors << text << std::flush;
    } else {
      context.print(reply, text);
    }
  }

  Outcome<int> hold(Daemon& daemon, const json& id, SignalQueue signals, const Context& context) {
    context.note("object " + dumped(id) + " stays loaded until this command ends (Ctrl-C)");
    auto end = holdUntilEnd(std::move(signals), daemon.socket(), watch_);
    if (!end) {
      return failed(ExitStatus::Failed, end.error().message);
    }
    if (*end == HoldEnd::ConnectionLost) {
      return failed(ExitStatus::Unreachable, howItWent(*end, id));
    }
    if (*end == HoldEnd::Unloaded) {
      return failed(ExitStatus::NotFound, howItWent(*end, id));
    }
    unload(daemon, id);
    return 0;
  }

  Outcome<int> runWhileHeld(Daemon& daemon, const json& id, SignalQueue signals, const Context& context) {
    const auto gone = [&](HoldEnd how) {
      context.errors << "btfctl: " << howItWent(how, id) << "; the command goes on" << "\n" << std::flush;
    };
    auto status = runCommand(std::move(signals), context.exec, dumped(id), daemon.socket(), watch_, gone);
    unload(daemon, id);
    if (!status) {
      context.errors << "btfctl: " << status.error().message << "\n" << std::flush;
      return status.error().code == ENOENT ? kCommandNotFound : kCommandNotRun;
    }
    return *status;
  }

  [[nodiscard]] std::string howItWent(HoldEnd how, const json& id) const {
    return how == HoldEnd::Unloaded ? "object " + dumped(id) + " was unloaded" + (watch_ ? watch_->by() : "")
                                    : "the daemon closed the connection: object " + dumped(id) + " is gone";
  }

  /// The end of the connection unloads the object, too, but some time after this process has ended: a script that waits
  /// for it wants the object gone. For the same reason it does not matter here what the daemon answers.
  static void unload(Daemon& daemon, const json& id) { static_cast<void>(daemon.call("Unload", {{"objectId", id}})); }

  LoadOptions options_;
  std::optional<ObjectWatch> watch_;
  bool attachAll_ = false;
  bool exec_ = false;
  bool stay_ = false;
};

} // namespace

std::unique_ptr<Command> loadCommand(CLI::App& parent) {
  return std::make_unique<LoadCommand>(parent);
}

} // namespace btfd::btfctl
