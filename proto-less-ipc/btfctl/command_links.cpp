#include "base/text.h"
#include "btfctl/command.h"
#include "btfctl/daemon.h"
#include "btfctl/fields.h"
#include "btfctl/load_request.h"
#include "btfctl/table.h"
#include "btfctl/target.h"
#include "btfctl/views.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace btfd::btfctl {
namespace {

using nlohmann::json;

class AttachCommand : public Command {
 public:
  explicit AttachCommand(CLI::App& parent)
      : Command(
            parent, "attach", "Attach a program of a loaded object",
            "  btfctl attach 7 on_connect\n"
            "      to what its section name says\n"
            "  btfctl attach 7 drop_udp interface:veth0,xdpMode:generic\n"
            "  btfctl attach 7 sample perf:hardware/cpu-cycles/1000000,cpu:0\n"
            "  btfctl attach tcpconnect on_malloc 'binary:libc.so.6,function:malloc'\n"
            "\n"
            "The link belongs to the object, and lives until it is detached or the object is unloaded: for an object\n"
            "that another btfctl holds, until that one ends. The object must be yours, or you must be root.\n"
            "\n" +
                targetHelp()) {
    argument("OBJECT", object_, "Id or name of the object");
    argument("PROGRAM", program_, "Name of its program");
    optionalArgument("TARGET", target_, "What to attach to (see below); taken from the section name when left out");
    option("--deadline", "DURATION", deadline_, "Give up after 500ms, 10s, 2min...");
  }

  [[nodiscard]] std::string subject() const override { return "attach " + program_ + " of " + object_; }

  Outcome<int> run(const Context& context) override {
    auto parameters = this->parameters();
    if (!parameters) {
      return misused(parameters.error());
    }
    auto daemon = Daemon::connect(context.socket);
    if (!daemon) {
      return std::unexpected(std::move(daemon).error());
    }
    auto id = findObject(*daemon, object_);
    if (!id) {
      return std::unexpected(std::move(id).error());
    }
    (*parameters)["objectId"] = *id;
    auto reply = daemon->call("Attach", *parameters);
    if (!reply) {
      return std::unexpected(std::move(reply).error());
    }
    context.print(*reply, linksView(json::array({field(*reply, "link")}), terminalWidth()));
    return 0;
  }

 private:
  [[nodiscard]] Result<json> parameters() const {
    json parameters{{"program", program_}};
    auto target = parseTarget(target_);
    if (!target) {
      return target;
    }
    if (!target->empty()) {
      parameters["target"] = std::move(*target);
    }
    if (!deadline_.empty()) {
      auto deadline = parseDeadline(deadline_);
      if (!deadline) {
        return std::unexpected(std::move(deadline).error());
      }
      parameters["deadlineMs"] = *deadline;
    }
    return parameters;
  }

  std::string object_;
  std::string program_;
  std::string target_;
  std::string deadline_;
};

class DetachCommand : public Command {
 public:
  explicit DetachCommand(CLI::App& parent)
      : Command(parent, "detach", "Detach a link; its program stays loaded",
                "  btfctl detach 12\n"
                "      link 12, as btfctl show and btfctl attach print it\n") {
    argument("LINK", link_, "Id of the link");
  }

  [[nodiscard]] std::string subject() const override { return "detach " + link_; }

  Outcome<int> run(const Context& context) override {
    auto id = parseId("link id", link_);
    if (!id) {
      return std::unexpected(std::move(id).error());
    }
    auto daemon = Daemon::connect(context.socket);
    if (!daemon) {
      return std::unexpected(std::move(daemon).error());
    }
    auto reply = daemon->call("Detach", {{"linkId", *id}});
    if (!reply) {
      return std::unexpected(std::move(reply).error());
    }
    context.print(*reply, "");
    return 0;
  }

 private:
  std::string link_;
};

class UpdateCommand : public Command {
 public:
  explicit UpdateCommand(CLI::App& parent)
      : Command(parent, "update", "Have a link run another program, without a gap",
                "  btfctl update 12 8 drop_udp\n"
                "      link 12 runs program drop_udp of object 8 in place of its own\n"
                "\n"
                "The link belongs to that object then, and lives as long as it does. For links of network and cgroup\n"
                "programs; those of probes and tracepoints the kernel does not update.\n") {
    argument("LINK", link_, "Id of the link");
    argument("OBJECT", object_, "Id or name of the object that has the new program");
    argument("PROGRAM", program_, "Name of the new program");
  }

  [[nodiscard]] std::string subject() const override { return "update " + link_; }

  Outcome<int> run(const Context& context) override {
    auto id = parseId("link id", link_);
    if (!id) {
      return std::unexpected(std::move(id).error());
    }
    auto daemon = Daemon::connect(context.socket);
    if (!daemon) {
      return std::unexpected(std::move(daemon).error());
    }
    auto object = findObject(*daemon, object_);
    if (!object) {
      return std::unexpected(std::move(object).error());
    }
    auto reply = daemon->call("Update", {{"linkId", *id}, {"objectId", *object}, {"program", program_}});
    if (!reply) {
      return std::unexpected(std::move(reply).error());
    }
    context.print(*reply, linksView(json::array({field(*reply, "link")}), terminalWidth()));
    return 0;
  }

 private:
  std::string link_;
  std::string object_;
  std::string program_;
};

/// `text` with what could move the cursor escaped: an iterator may print what processes call themselves.
std::string forTerminal(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\n\t"), text.size());
    shown += escaped(text.substr(0, end)) + std::string(text.substr(end, 1));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return shown;
}

class ReadCommand : public Command {
 public:
  explicit ReadCommand(CLI::App& parent)
      : Command(
            parent, "read", "Print what the program of an iterator's link prints",
            "  btfctl read 12\n"
            "      runs the program of link 12, as btfctl show and btfctl attach print it, and prints its output\n") {
    argument("LINK", link_, "Id of the link");
  }

  [[nodiscard]] std::string subject() const override { return "read " + link_; }

  Outcome<int> run(const Context& context) override {
    auto id = parseId("link id", link_);
    if (!id) {
      return std::unexpected(std::move(id).error());
    }
    auto daemon = Daemon::connect(context.socket);
    if (!daemon) {
      return std::unexpected(std::move(daemon).error());
    }
    auto ended = daemon->stream("Read", {{"linkId", *id}}, [&](const json& reply) {
      const json& data = field(reply, "data");
      context.print(reply, data.is_string() ? forTerminal(data.get_ref<const std::string&>()) : "");
    });
    if (!ended) {
      return std::unexpected(std::move(ended).error());
    }
    return 0;
  }

 private:
  std::string link_;
};

} // namespace

std::unique_ptr<Command> attachCommand(CLI::App& parent) {
  return std::make_unique<AttachCommand>(parent);
}

std::unique_ptr<Command> updateCommand(CLI::App& parent) {
  return std::make_unique<UpdateCommand>(parent);
}

std::unique_ptr<Command> detachCommand(CLI::App& parent) {
  return std::make_unique<DetachCommand>(parent);
}

std::unique_ptr<Command> readCommand(CLI::App& parent) {
  return std::make_unique<ReadCommand>(parent);
}

} // namespace btfd::btfctl
