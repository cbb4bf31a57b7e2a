#include "btfctl/command.h"
#include "btfctl/daemon.h"
#include "btfctl/fields.h"
#include "btfctl/load_request.h"
#include "btfctl/table.h"
#include "btfctl/views.h"

#include <CLI/CLI.hpp>

#include <utility>

namespace btfd::btfctl {
namespace {

using nlohmann::json;

class UnloadCommand : public Command {
 public:
  explicit UnloadCommand(CLI::App& parent)
      : Command(parent, "unload", "Unload an object: detach its links, drop its programs and maps",
                "  btfctl unload 7\n"
                "  btfctl unload tcpconnect\n"
                "      by name, if only one object has it; a name of digits only is taken for an id\n") {
    argument("OBJECT", object_, "Id or name of the object");
  }

  [[nodiscard]] std::string subject() const override { return "unload " + object_; }

  Outcome<int> run(const Context& context) override {
    auto daemon = Daemon::connect(context.socket);
    if (!daemon) {
      return std::unexpected(std::move(daemon).error());
    }
    auto id = findObject(*daemon, object_);
    if (!id) {
      return std::unexpected(std::move(id).error());
    }
    auto reply = daemon->call("Unload", {{"objectId", *id}});
    if (!reply) {
      return std::unexpected(std::move(reply).error());
    }
    context.print(*reply, "");
    return 0;
  }

 private:
  std::string object_;
};

class ListCommand : public Command {
 public:
  explicit ListCommand(CLI::App& parent)
      : Command(parent, "list", "List loaded objects",
                "  btfctl list\n"
                "  btfctl list --label team=network --label stage=test\n"
                "      those that have both labels\n"
                "  btfctl list --json | jq '.objects[] | {id, name}'\n") {
    repeatable("--label", "KEY=VALUE", labels_, "Only objects with this label");
    option("--name", "NAME", name_, "Only objects of this name");
  }

  [[nodiscard]] std::string subject() const override { return "list"; }

  Outcome<int> run(const Context& context) override {
    json parameters = json::object();
    auto labels = parseLabels(labels_);
    if (!labels) {
      return misused(labels.error());
    }
    if (!labels->empty()) {
      parameters["labels"] = std::move(*labels);
    }
    if (!name_.empty()) {
      parameters["name"] = name_;
    }
    auto daemon = Daemon::connect(context.socket);
    if (!daemon) {
      return std::unexpected(std::move(daemon).error());
    }
    auto objects = daemon->list(parameters);
    if (!objects) {
      return std::unexpected(std::move(objects).error());
    }
    context.print({{"objects", *objects}}, objectsView(*objects, terminalWidth()));
    return 0;
  }

 private:
  std::vector<std::string> labels_;
  std::string name_;
};

class ShowCommand : public Command {
 public:
  explicit ShowCommand(CLI::App& parent)
      : Command(parent, "show", "Show one object: its programs, maps and links",
                "  btfctl show 7\n"
                "  btfctl show tcpconnect --relocations\n"
                "      with what each CO-RE relocation came to when the object was loaded\n"
                "  btfctl show tcpconnect --json | jq -r '.object.maps[].kernelId'\n") {
    argument("OBJECT", object_, "Id or name of the object");
    flag("--relocations", relocations_, "Show what became of the object's CO-RE relocations, too");
  }

  [[nodiscard]] std::string subject() const override { return "show " + object_; }

  Outcome<int> run(const Context& context) override {
    auto daemon = Daemon::connect(context.socket);
    if (!daemon) {
      return std::unexpected(std::move(daemon).error());
    }
    auto id = findObject(*daemon, object_);
    if (!id) {
      return std::unexpected(std::move(id).error());
    }
    json parameters{{"objectId", *id}};
    if (relocations_) {
      parameters["relocations"] = true;
    }
    auto reply = daemon->call("Describe", parameters);
    if (!reply) {
      return std::unexpected(std::move(reply).error());
    }
    std::string text = objectView(field(*reply, "object"), terminalWidth());
    if (relocations_) {
      text += "\n" +
              relocationsView(field(*reply, "relocations"), numberField(*reply, "relocationsLeftOut"), terminalWidth());
    }
    context.print(*reply, text);
    return 0;
  }

 private:
  std::string object_;
  bool relocations_ = false;
};

} // namespace

std::unique_ptr<Command> unloadCommand(CLI::App& parent) {
  return std::make_unique<UnloadCommand>(parent);
}

std::unique_ptr<Command> listCommand(CLI::App& parent) {
  return std::make_unique<ListCommand>(parent);
}

std::unique_ptr<Command> showCommand(CLI::App& parent) {
  return std::make_unique<ShowCommand>(parent);
}

} // namespace btfd::btfctl
