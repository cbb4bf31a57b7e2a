#include "btfctl/load_request.h"

#include "base/object_name.h"
#include "btfctl/duration.h"
#include "btfctl/object_file.h"
#include "btfctl/part_options.h"
#include "btfctl/reused_map.h"
#include "btfctl/target.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>

#include <fcntl.h>

namespace btfd::btfctl {
namespace {

using nlohmann::json;

struct Assignment {
  std::string name;
  std::string value;
};

/// Splits NAME=VALUE. `option` and `form` are for the error.
Result<Assignment> splitAssignment(std::string_view option, std::string_view form, std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return fail(std::string(option) + " " + std::string(text) + ": must be written as " + std::string(form));
  }
  return Assignment{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

std::unexpected<Error> givenTwice(std::string_view option, const std::string& name) {
  return fail(std::string(option) + " " + name + ": given twice");
}

void setUnlessEmpty(json& parameters, const char* key, json value) {
  if (!value.empty()) {
    parameters[key] = std::move(value);
  }
}

Result<void> addEnabled(const LoadOptions& options, json& programs) {
  for (const std::string& program : options.enable) {
    programs[program]["enabled"] = true;
  }
  for (const std::string& program : options.disable) {
    if (std::ranges::find(options.enable, program) != options.enable.end()) {
      return fail("--disable " + program + ": it is enabled by --enable");
    }
    programs[program]["enabled"] = false;
  }
  return {};
}

Result<void> addAttachments(const LoadOptions& options, json& programs) {
  for (const std::string& attach : options.attach) {
    const std::size_t equals = attach.find('=');
    const std::string program = attach.substr(0, equals);
    if (program.empty()) {
      return fail("--attach " + attach + ": must be written as PROGRAM or PROGRAM=TARGET");
    }
    auto target =
        parseTarget(equals == std::string::npos ? std::string_view{} : std::string_view(attach).substr(equals + 1));
    if (!target) {
      return std::unexpected(std::move(target).error().within("--attach " + program));
    }
    programs[program]["attach"].push_back(std::move(*target));
  }
  return {};
}

/// A function, which may stand behind its module's name, or if there is a number first, a program of that object.
json readProgramTarget(std::string_view text) {
  const std::size_t colon = text.find(':');
  std::int64_t objectId = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + std::min(colon, text.size()), objectId);
  if (colon == std::string_view::npos || error != std::errc{} || end != text.data() + colon) {
    return json{{"function", std::string(text)}};
  }
  const std::string_view program = text.substr(colon + 1);
  const std::size_t second = program.find(':');
  json target{{"objectId", objectId}, {"program", std::string(program.substr(0, second))}};
  if (second != std::string_view::npos) {
    target["function"] = std::string(program.substr(second + 1));
  }
  return target;
}

Result<void> addTargets(const LoadOptions& options, json& programs) {
  for (const std::string& text : options.targets) {
    auto assignment = splitAssignment("--made-for", "PROGRAM=FUNCTION or PROGRAM=OBJECT-ID:PROGRAM", text);
    if (!assignment) {
      return std::unexpected(std::move(assignment).error());
    }
    json& program = programs[assignment->name];
    if (program.contains("target")) {
      return givenTwice("--made-for", assignment->name);
    }
    program["target"] = readProgramTarget(assignment->value);
  }
  return {};
}

Result<void> addVariables(const LoadOptions& options, json& parameters) {
  json variables = json::object();
  for (const std::string& text : options.variables) {
    auto assignment = splitAssignment("--set", "VARIABLE=JSON", text);
    if (!assignment) {
      return std::unexpected(std::move(assignment).error());
    }
    json value = json::parse(assignment->value, nullptr, false);
    if (value.is_discarded()) {
      return fail("--set " + assignment->name + ": '" + assignment->value +
                  "' is not JSON; a text stands in double quotes, as in --set '" + assignment->name + "=\"text\"'");
    }
    if (!variables.emplace(assignment->name, std::move(value)).second) {
      return givenTwice("--set", assignment->name);
    }
  }
  setUnlessEmpty(parameters, "variables", std::move(variables));
  return {};
}

/// Adds to `requests`, by name, what `options` say, each NAME=FIELD:VALUE,...
Result<void> addFields(std::string_view option, const std::vector<std::string>& options,
                       Result<json> (*parse)(std::string_view), json& requests) {
  for (const std::string& text : options) {
    auto assignment = splitAssignment(option, "NAME=FIELD:VALUE,...", text);
    if (!assignment) {
      return std::unexpected(std::move(assignment).error());
    }
    auto request = parse(assignment->value);
    if (!request) {
      return std::unexpected(std::move(request).error().within(std::string(option) + " " + assignment->name));
    }
    json& merged = requests[assignment->name];
    for (const auto& [field, value] : request->items()) {
      if (merged.contains(field)) {
        return givenTwice(option, assignment->name + "=" + field);
      }
      merged[field] = value;
    }
  }
  return {};
}

Result<void> addKconfig(const LoadOptions& options, json& parameters) {
  json kconfig = json::object();
  for (const std::string& text : options.kconfig) {
    auto assignment = splitAssignment("--kconfig", "CONFIG_NAME=VALUE", text);
    if (!assignment) {
      return std::unexpected(std::move(assignment).error());
    }
    if (!kconfig.emplace(assignment->name, assignment->value).second) {
      return givenTwice("--kconfig", assignment->name);
    }
  }
  setUnlessEmpty(parameters, "kconfig", std::move(kconfig));
  return {};
}

Result<void> addMaps(const LoadOptions& options, json& parameters) {
  json maps = json::object();
  for (const std::string& text : options.maxEntries) {
    auto assignment = splitAssignment("--max-entries", "MAP=NUMBER", text);
    if (!assignment) {
      return std::unexpected(std::move(assignment).error());
    }
    const std::string& value = assignment->value;
    std::uint32_t number = 0; // the width of max_entries in union bpf_attr
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc{} || end != value.data() + value.size() || number == 0) {
      return fail("--max-entries " + text + ": the number must be between 1 and 4294967295");
    }
    if (!maps.emplace(assignment->name, json{{"maxEntries", number}}).second) {
      return givenTwice("--max-entries", assignment->name);
    }
  }
  if (auto added = addFields("--map", options.maps, parseMapOptions, maps); !added) {
    return added;
  }
  setUnlessEmpty(parameters, "maps", std::move(maps));
  return {};
}

Result<void> addPrograms(const LoadOptions& options, json& parameters) {
  json programs = json::object();
  for (const auto add : {addEnabled, addTargets, addAttachments}) {
    if (auto added = add(options, programs); !added) {
      return added;
    }
  }
  if (auto added = addFields("--program", options.programs, parseProgramOptions, programs); !added) {
    return added;
  }
  setUnlessEmpty(parameters, "programs", std::move(programs));
  return {};
}

Result<void> addLabels(const LoadOptions& options, json& parameters) {
  auto labels = parseLabels(options.labels);
  if (!labels) {
    return std::unexpected(std::move(labels).error());
  }
  setUnlessEmpty(parameters, "labels", std::move(*labels));
  return {};
}

Result<void> addDeadline(const LoadOptions& options, json& parameters) {
  if (options.deadline.empty()) {
    return {};
  }
  auto deadline = parseDeadline(options.deadline);
  if (!deadline) {
    return std::unexpected(std::move(deadline).error());
  }
  parameters["deadlineMs"] = *deadline;
  return {};
}

} // namespace

Result<json> parseLabels(const std::vector<std::string>& labels) {
  json parsed = json::object();
  for (const std::string& text : labels) {
    auto assignment = splitAssignment("--label", "KEY=VALUE", text);
    if (!assignment) {
      return std::unexpected(std::move(assignment).error());
    }
    if (!parsed.emplace(assignment->name, assignment->value).second) {
      return givenTwice("--label", assignment->name);
    }
  }
  return parsed;
}

Result<std::int64_t> parseDeadline(const std::string& text) {
  auto duration = parseDuration(text);
  if (!duration) {
    return std::unexpected(std::move(duration).error().within("--deadline"));
  }
  return duration->count();
}

Result<json> loadParameters(const LoadOptions& options) {
  json parameters = json::object();
  const bool isFile = options.object != "-";
  if (std::string name = options.name.empty() && isFile ? objectName(options.object) : options.name; !name.empty()) {
    parameters["name"] = std::move(name);
  }
  if (options.logLevel != 0) {
    parameters["verifierLogLevel"] = options.logLevel;
  }
  if (options.dryRun) {
    parameters["dryRun"] = true;
  }
  for (const auto add : {addLabels, addPrograms, addVariables, addMaps, addKconfig, addDeadline}) {
    if (auto added = add(options, parameters); !added) {
      return std::unexpected(std::move(added).error());
    }
  }
  return parameters;
}

Result<std::vector<ReusedMap>> reusedMaps(const LoadOptions& options) {
  std::vector<ReusedMap> maps;
  for (const std::string& text : options.reuse) {
    auto assignment = splitAssignment("--reuse", "MAP=PATH or MAP=ID", text);
    if (!assignment) {
      return std::unexpected(std::move(assignment).error());
    }
    if (std::ranges::find(maps, assignment->name, &ReusedMap::name) != maps.end()) {
      return givenTwice("--reuse", assignment->name);
    }
    maps.push_back({std::move(assignment->name), std::move(assignment->value)});
  }
  return maps;
}

Result<LoadRequest> withDescriptors(json parameters, const std::string& object, const std::vector<ReusedMap>& maps,
                                    const std::string& kernelBtf) {
  LoadRequest request{std::move(parameters), {}};
  auto file = openObject(object);
  if (!file) {
    return std::unexpected(std::move(file).error());
  }
  request.parameters["objectFileDescriptor"] = request.descriptors.size();
  request.descriptors.push_back(std::move(*file));
  for (const ReusedMap& map : maps) {
    auto opened = openMap(map.source);
    if (!opened) {
      return std::unexpected(std::move(opened).error().within("--reuse " + map.name));
    }
    request.parameters["maps"][map.name]["reuseFileDescriptor"] = request.descriptors.size();
    request.descriptors.push_back(std::move(*opened));
  }
  if (!kernelBtf.empty()) {
    UniqueFd btf(::open(kernelBtf.c_str(), O_RDONLY | O_CLOEXEC));
    if (!btf) {
      return failErrno("--kernel-btf " + kernelBtf, errno);
    }
    request.parameters["kernelBtfFileDescriptor"] = request.descriptors.size();
    request.descriptors.push_back(std::move(btf));
  }
  return request;
}

} // namespace btfd::btfctl
