#include "btfctl/command.h"
#include "btfctl/daemon.h"
#include "btfctl/fields.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string_view>
#include <utility>

namespace btfd::btfctl {
namespace {

using nlohmann::json;

/// Reads an argument as JSON. `what` it is, is named in the error.
Outcome<json> parseJson(const std::string& what, const std::string& text) {
  json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) {
    return failed(ExitStatus::Usage,
                  what + " '" + text + "' is not JSON; a text stands in double quotes, as in '\"text\"'");
  }
  return value;
}

/// What the commands about a map have in common.
class MapCommand : public Command {
 public:
  MapCommand(CLI::App& group, const std::string& name, const std::string& description, const std::string& examples)
      : Command(group, name, description, examples), name_(name) {
    argument("OBJECT", object_, "Id or name of the object");
    argument("MAP", map_, "Name of the map");
  }

  [[nodiscard]] std::string subject() const override { return "map " + name_ + " " + object_ + " " + map_; }

 protected:
  /// The connection, and the parameters that all methods have.
  Outcome<std::pair<Daemon, json>> begin(const Context& context) const {
    auto daemon = Daemon::connect(context.socket);
    if (!daemon) {
      return std::unexpected(std::move(daemon).error());
    }
    auto id = findObject(*daemon, object_);
    if (!id) {
      return std::unexpected(std::move(id).error());
    }
    return std::pair(std::move(*daemon), json{{"objectId", *id}, {"map", map_}});
  }

 private:
  std::string name_;
  std::string object_;
  std::string map_;
};

class DumpCommand : public MapCommand {
 public:
  explicit DumpCommand(CLI::App& group)
      : MapCommand(group, "dump", "Print all entries of a map",
                   "  btfctl map dump tcpconnect counts\n"
                   "      a line for each entry: its key and its value, as the object's BTF describes them\n"
                   "  btfctl map dump 7 .data --json | jq '.value.limit'\n"
                   "      the object's global variables; one JSON object a line\n") {}

  Outcome<int> run(const Context& context) override {
    auto begun = begin(context);
    if (!begun) {
      return std::unexpected(std::move(begun).error());
    }
    auto& [daemon, parameters] = *begun;
    while (true) {
      auto reply = daemon.call("MapDump", parameters);
      if (!reply) {
        return std::unexpected(std::move(reply).error());
      }
      for (const json& entry : field(*reply, "entries")) {
        context.print(entry, dumped(field(entry, "key")) + "  " + dumped(field(entry, "value")) + "\n");
      }
      const json& next = field(*reply, "next");
      if (!next.is_string()) {
        return 0;
      }
      parameters["after"] = next;
    }
  }
};

/// What the commands about one entry have in common.
class EntryCommand : public MapCommand {
 public:
  EntryCommand(CLI::App& group, const std::string& name, const std::string& description, const std::string& examples)
      : MapCommand(group, name, description, examples) {
    argument("KEY", key_, "The entry's key, as JSON");
  }

 protected:
  /// What is said of the entry: its key.
  [[nodiscard]] virtual Outcome<json> entry() const {
    auto key = parseJson("KEY", key_);
    if (!key) {
      return std::unexpected(std::move(key).error());
    }
    json entry;
    entry["key"] = std::move(*key);
    return entry;
  }

  /// The reply of `method`, to which `more` is given, too.
  Outcome<json> callFor(const Context& context, std::string_view method, const json& more = json::object()) const {
    auto wanted = entry();
    if (!wanted) {
      return std::unexpected(std::move(wanted).error());
    }
    auto begun = begin(context);
    if (!begun) {
      return std::unexpected(std::move(begun).error());
    }
    auto& [daemon, parameters] = *begun;
    parameters.update(more);
    parameters["entry"] = std::move(*wanted);
    return daemon.call(method, parameters);
  }

 private:
  std::string key_;
};

class LookupCommand : public EntryCommand {
 public:
  explicit LookupCommand(CLI::App& group)
      : EntryCommand(group, "lookup", "Print the value of one entry of a map",
                     "  btfctl map lookup tcpconnect counts 4711\n") {}

  Outcome<int> run(const Context& context) override {
    auto reply = callFor(context, "MapLookup");
    if (!reply) {
      return std::unexpected(std::move(reply).error());
    }
    context.print(*reply, dumped(field(field(*reply, "entry"), "value")) + "\n");
    return 0;
  }
};

class UpdateCommand : public EntryCommand {
 public:
  explicit UpdateCommand(CLI::App& group)
      : EntryCommand(group, "update", "Change an entry of a map, or add one",
                     "  btfctl map update filter ports 443 '{\"verdict\": \"DROP\"}'\n"
                     "      of an entry that is there, members that are not named keep their value\n"
                     "  btfctl map update filter .data 0 '{\"enabled\": true}'\n"
                     "      a global variable\n") {
    argument("VALUE", value_, "Its value, as JSON");
    CLI::Option* added = flag("--new", new_, "Only if there is no such entry yet");
    flag("--existing", existing_, "Only if there is such an entry")->excludes(added);
  }

  Outcome<int> run(const Context& context) override {
    json more = json::object();
    if (new_ || existing_) {
      more["condition"] = new_ ? "new" : "existing";
    }
    auto reply = callFor(context, "MapUpdate", more);
    if (!reply) {
      return std::unexpected(std::move(reply).error());
    }
    context.print(*reply, "");
    return 0;
  }

 protected:
  [[nodiscard]] Outcome<json> entry() const override {
    auto entry = EntryCommand::entry();
    if (!entry) {
      return entry;
    }
    auto value = parseJson("VALUE", value_);
    if (!value) {
      return value;
    }
    (*entry)["value"] = std::move(*value);
    return entry;
  }

 private:
  std::string value_;
  bool new_ = false;
  bool existing_ = false;
};

class DeleteCommand : public EntryCommand {
 public:
  explicit DeleteCommand(CLI::App& group)
      : EntryCommand(group, "delete", "Delete an entry of a map", "  btfctl map delete filter ports 443\n") {}

  Outcome<int> run(const Context& context) override {
    auto reply = callFor(context, "MapDelete");
    if (!reply) {
      return std::unexpected(std::move(reply).error());
    }
    context.print(*reply, "");
    return 0;
  }
};

} // namespace

std::vector<std::unique_ptr<Command>> mapCommands(CLI::App& parent) {
  CLI::App* group = parent.add_subcommand("map", "Read and change entries of an object's maps");
  group->require_subcommand(1);
  group->fallthrough();
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(std::make_unique<DumpCommand>(*group));
  commands.push_back(std::make_unique<LookupCommand>(*group));
  commands.push_back(std::make_unique<UpdateCommand>(*group));
  commands.push_back(std::make_unique<DeleteCommand>(*group));
  return commands;
}

} // namespace btfd::btfctl
