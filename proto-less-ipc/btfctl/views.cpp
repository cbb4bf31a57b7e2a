#include "btfctl/views.h"

#include "btfctl/fields.h"
#include "btfctl/table.h"
#include "btfctl/text.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace btfd::btfctl {
namespace {

using nlohmann::json;

std::string labelsText(const json& labels) {
  std::string text;
  for (const auto& [key, value] : labels.items()) {
    text += (text.empty() ? "" : ",") + printable(key) + "=" + textField(labels, key.c_str());
  }
  return text;
}

/// "name  value" lines, values aligned, under a title.
std::string factsText(const std::string& title, const std::vector<std::pair<std::string, std::string>>& facts) {
  std::size_t widest = 0;
  for (const auto& [name, value] : facts) {
    widest = std::max(widest, name.size());
  }
  std::string text = title + "\n";
  for (const auto& [name, value] : facts) {
    if (!value.empty()) {
      text += "  " + name + std::string(widest + 2 - name.size(), ' ') + value + "\n";
    }
  }
  return text;
}

/// A table under a title, behind an empty line; nothing if there is no entry.
std::string section(const std::string& title, const json& entries, const std::string& table) {
  return entries.empty() ? "" : "\n" + title + "\n" + indented(table, 2);
}

/// Space for a table that is indented by two.
std::size_t inner(std::size_t width) {
  return width > 2 ? width - 2 : width;
}

std::string countOf(const json& object, const char* key) {
  return std::to_string(field(object, key).size());
}

std::string loadedText(const json& object) {
  return localTime(numberField(object, "loadedAtUSec")) + ", in " +
         humanDuration(numberField(object, "loadDurationUSec"));
}

std::string programsTable(const json& programs, std::size_t width) {
  Table table({{"PROGRAM"}, {"TYPE"}, {"SECTION", Align::Left, true}, {"KERNEL ID", Align::Right}, {"TAG"}});
  for (const json& program : programs) {
    table.add({textField(program, "name"), textField(program, "type"), textField(program, "section"),
               textField(program, "kernelId"), textField(program, "tag")});
  }
  return table.render(width);
}

std::string mapsTable(const json& maps, std::size_t width) {
  Table table({{"MAP", Align::Left, true},
               {"TYPE"},
               {"KEY", Align::Right},
               {"VALUE", Align::Right},
               {"ENTRIES", Align::Right},
               {"KERNEL ID", Align::Right}});
  for (const json& map : maps) {
    table.add({textField(map, "name"), textField(map, "type"), textField(map, "keySize"), textField(map, "valueSize"),
               textField(map, "maxEntries"), textField(map, "kernelId")});
  }
  return table.render(width);
}

std::string modulesTable(const json& modules, std::size_t width) {
  Table table({{"MODULE"}, {"TYPES", Align::Right}, {"SIZE", Align::Right}, {"LEFT OUT", Align::Left, true}});
  for (const json& module : modules) {
    table.add({textField(module, "name"), textField(module, "types"), humanBytes(numberField(module, "bytes")),
               textField(module, "error")});
  }
  return table.render(width);
}

} // namespace

std::string objectsView(const json& objects, std::size_t width) {
  if (objects.empty()) {
    return "No objects.\n";
  }
  Table table({{"ID", Align::Right},
               {"NAME", Align::Left, true},
               {"PROGRAMS", Align::Right},
               {"MAPS", Align::Right},
               {"LINKS", Align::Right},
               {"OWNER"},
               {"LOADED"},
               {"LABELS", Align::Left, true}});
  for (const json& object : objects) {
    table.add({textField(object, "id"), textField(object, "name"), countOf(object, "programs"), countOf(object, "maps"),
               countOf(object, "links"), userName(numberField(object, "ownerUid", -1)),
               localTime(numberField(object, "loadedAtUSec")), labelsText(field(object, "labels"))});
  }
  return table.render(width);
}

std::string objectView(const json& object, std::size_t width) {
  const std::int64_t id = numberField(object, "id");
  const std::string title = (id == 0 ? "Dry run" : "Object " + std::to_string(id)) + ": " + textField(object, "name");
  const json& programs = field(object, "programs");
  const json& maps = field(object, "maps");
  const json& links = field(object, "links");
  return factsText(title, {{"owner", userName(numberField(object, "ownerUid", -1))},
                           {"lifetime", textField(object, "lifetime")},
                           {"loaded", loadedText(object)},
                           {"labels", labelsText(field(object, "labels"))},
                           {"sha256", textField(object, "digest")}}) +
         section("Programs", programs, programsTable(programs, inner(width))) +
         section("Maps", maps, mapsTable(maps, inner(width))) + section("Links", links, linksView(links, inner(width)));
}

std::string linksView(const json& links, std::size_t width) {
  Table table(
      {{"LINK", Align::Right}, {"PROGRAM"}, {"KIND"}, {"TARGET", Align::Left, true}, {"KERNEL ID", Align::Right}});
  for (const json& link : links) {
    table.add({textField(link, "id"), textField(link, "program"), textField(link, "kind"), textField(link, "target"),
               textField(link, "kernelId")});
  }
  return table.render(width);
}

std::string relocationsView(const json& relocations, std::int64_t leftOut, std::size_t width) {
  if (relocations.empty()) {
    return "No CO-RE relocations.\n";
  }
  Table table({{"PROGRAM", Align::Left, true},
               {"INSN", Align::Right},
               {"KIND"},
               {"ASKED FOR", Align::Left, true},
               {"OUTCOME"},
               {"VALUE", Align::Right},
               {"COMPILED", Align::Right},
               {"TYPE", Align::Left, true},
               {"IN"}});
  std::string reasons;
  for (const json& relocation : relocations) {
    table.add({textField(relocation, "program"), textField(relocation, "instruction"), textField(relocation, "kind"),
               textField(relocation, "access"), textField(relocation, "outcome"), textField(relocation, "value"),
               textField(relocation, "localValue"), textField(relocation, "targetType"),
               textField(relocation, "targetBtf")});
    if (const std::string reason = textField(relocation, "reason"); !reason.empty()) {
      reasons += textField(relocation, "program") + ", instruction " + textField(relocation, "instruction") + ": " +
                 reason + "\n";
    }
  }
  std::string text = "CO-RE relocations\n" + indented(table.render(inner(width)), 2);
  if (leftOut > 0) {
    text += "  and " + std::to_string(leftOut) + " more\n";
  }
  return text + (reasons.empty() ? "" : "\n" + reasons);
}

std::string disassemblyView(const json& reply, bool code) {
  constexpr std::size_t kNumberWidth = 6;
  std::string text;
  for (const json& instruction : field(reply, "instructions")) {
    if (field(instruction, "source").is_string()) {
      text += "; " + textField(instruction, "source") + " @ " + textField(instruction, "file") + ":" +
              textField(instruction, "line") + "\n";
    }
    const std::string number = textField(instruction, "number");
    text += std::string(kNumberWidth - std::min(kNumberWidth, number.size()), ' ') + number + ": " +
            (code ? textField(instruction, "code") + "  " : "") + textField(instruction, "text");
    if (const std::string relocation = textField(instruction, "relocation"); !relocation.empty()) {
      text += "  ; CO-RE: " + relocation;
    }
    text += "\n";
  }
  if (const std::int64_t leftOut = numberField(reply, "instructionsLeftOut"); leftOut > 0) {
    text += "and " + std::to_string(leftOut) + " more\n";
  }
  return text;
}

std::string statisticsView(const json& document, std::size_t width) {
  constexpr std::int64_t kMicrosecondsPerSecond = 1'000'000;
  const std::int64_t interval = std::max<std::int64_t>(1, numberField(document, "intervalUSec"));
  Table table({{"PROGRAM", Align::Left, true},
               {"RUNS/S", Align::Right},
               {"NS/RUN", Align::Right},
               {"CPU %", Align::Right},
               {"RUNS", Align::Right},
               {"MISSED", Align::Right}});
  for (const auto& [program, after] : field(document, "statistics").items()) {
    const json& before = field(field(document, "before"), program.c_str());
    const std::int64_t runs = numberField(after, "runs") - numberField(before, "runs");
    const std::int64_t time = numberField(after, "runTimeNSec") - numberField(before, "runTimeNSec");
    const std::int64_t perMille = time / interval; // nanoseconds of a microsecond
    table.add({printable(program), std::to_string(runs * kMicrosecondsPerSecond / interval),
               runs > 0 ? std::to_string(time / runs) : "-",
               std::to_string(perMille / 10) + "." + std::to_string(perMille % 10), textField(after, "runs"),
               textField(after, "recursionMisses")});
  }
  return table.render(width);
}

std::string kernelView(const json& reply, std::size_t width) {
  const json& spec = field(reply, "spec");
  const std::string title = "Linux " + textField(reply, "release");
  if (spec.is_null()) {
    const std::string reason = textField(reply, "reason");
    return title + ": no kernel BTF is resident" + (reason.empty() ? "" : ": " + reason) + "\n";
  }
  const bool mapped = field(spec, "mapped") == true;
  const json& modules = field(spec, "modules");
  return factsText(title, {{"BTF", textField(spec, "path") + (mapped ? " (the kernel's own pages)" : " (a copy)")},
                           {"size", humanBytes(numberField(spec, "bytes"))},
                           {"types", textField(spec, "types")},
                           {"names indexed", textField(spec, "indexedNames")},
                           {"private memory", humanBytes(numberField(spec, "privateBytes"))},
                           {"generation", textField(spec, "generation")},
                           {"built", localTime(numberField(spec, "builtAtUSec")) + ", parsed in " +
                                         humanDuration(numberField(spec, "parseUSec")) + ", indexed in " +
                                         humanDuration(numberField(spec, "indexUSec"))},
                           {"builds", textField(reply, "buildCount") + " since the daemon started"}}) +
         section("Modules", modules, modulesTable(modules, inner(width)));
}

std::string eventView(const json& event) {
  const std::string message = textField(event, "message");
  const bool hasUser = field(event, "uid").is_number_integer();
  // No kind, id and name beside it: the message has them in words.
  return localTime(numberField(event, "atUSec"), true) + "  " +
         (hasUser ? userName(numberField(event, "uid")) + ": " : "") +
         (message.empty() ? textField(event, "kind") : message);
}

std::string verifierLogsView(const json& logs) {
  std::string text;
  for (const auto& [program, log] : logs.items()) {
    if (log.is_string()) {
      text += "\nVerifier log of " + printable(program) + "\n" +
              indented(printable(log.get_ref<const std::string&>(), Lines::Keep), 2);
    }
  }
  return text;
}

} // namespace btfd::btfctl
