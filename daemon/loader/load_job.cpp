#include "load_job.h"

#include "arena_address.h"
#include "attach.h"
#include "base/text.h"
#include "diagnosis.h"
#include "json_variable.h"
#include "load_diagnosis.h"
#include "map_options.h"
#include "multi_probes.h"
#include "object/libbpf_log.h"
#include "object_to_load.h"
#include "open_object.h"
#include "program_options.h"
#include "program_target.h"
#include "rejected_instruction.h"
#include "seam.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <span>

namespace btfd::loader {

namespace {

/// What the verifier's logs of all programs together may take in an answer, unless a single one may take more.
constexpr std::size_t kLogsBytes = std::size_t{2} << 20;

/// `name` of a type, or its number where the kernel knows a type that libbpf does not.
std::string typeText(const char* name, std::uint32_t number) {
  return name == nullptr ? std::to_string(number) : std::string(name);
}

nlohmann::json describeProgram(const struct bpf_program& program, JobReply& reply) {
  struct bpf_prog_info info{};
  __u32 length = sizeof(info);
  const int fd = bpf_program__fd(&program);
  if (bpf_prog_get_info_by_fd(fd, &info, &length) < 0) {
    info = {};
  }
  nlohmann::json described;
  described["name"] = bpf_program__name(&program);
  described["section"] = bpf_program__section_name(&program);
  described["type"] = typeText(libbpf_bpf_prog_type_str(bpf_program__type(&program)), bpf_program__type(&program));
  described["attachType"] = attachTypeName(program);
  described["kernelId"] = info.id;
  described["tag"] = toHex(std::as_bytes(std::span(info.tag)));
  described["descriptor"] = reply.add(BorrowedFd(fd));
  return described;
}

nlohmann::json describeMap(const std::string& name, const struct bpf_map& map, JobReply& reply) {
  struct bpf_map_info info{};
  __u32 length = sizeof(info);
  const int fd = bpf_map__fd(&map);
  if (bpf_map_get_info_by_fd(fd, &info, &length) < 0) {
    info = {};
  }
  nlohmann::json described;
  described["name"] = name;
  described["type"] = typeText(object::mapTypeName(object::mapType(map)), object::mapType(map));
  described["kernelId"] = info.id;
  described["keySize"] = bpf_map__key_size(&map);
  described["valueSize"] = bpf_map__value_size(&map);
  described["maxEntries"] = bpf_map__max_entries(&map);
  described["descriptor"] = reply.add(BorrowedFd(fd));
  return described;
}

class LoadJob {
 public:
  LoadJob(const nlohmann::json& request, RequestDescriptors& descriptors, const JobLimits& limits,
          VerifierLogBuffer& verifierLog)
      : request_(request), parameters_(request.at("parameters")), pinDirectory_(request.value("pinDirectory", "")),
        descriptors_(descriptors), limits_(limits), verifierLog_(verifierLog) {}

  Outcome<JobReply> run() {
    // Each step leaves what it made in members whose destructors undo it: a failure at any of them leaves nothing.
    for (const auto step :
         {&LoadJob::open, &LoadJob::choosePrograms, &LoadJob::checkDescription, &LoadJob::checkRelocations,
          &LoadJob::changeMaps, &LoadJob::setVariables, &LoadJob::setTargets, &LoadJob::prepareVerifierLog,
          &LoadJob::load, &LoadJob::attach, &LoadJob::makeImage}) {
      if (auto done = (this->*step)(); !done) {
        detachAll();
        return std::unexpected(std::move(done.error()));
      }
    }
    return answer();
  }

 private:
  Outcome<void> open() {
    auto read = ObjectToLoad::read(request_, descriptors_, limits_);
    if (!read) {
      return std::unexpected(std::move(read.error()));
    }
    given_ = std::move(*read);
    auto opened = openObject(given_->bytes(),
                             {.name = parameters_.value("name", ""),
                              .pinDirectory = pinDirectory_,
                              .kconfig = request_.value("kconfig", "")},
                             log_);
    if (!opened) {
      return std::unexpected(std::move(opened.error()));
    }
    object_ = std::move(*opened);
    if (std::string why = object::whyNothingToLoad(*object_); !why.empty()) {
      return invalidObject(std::move(why));
    }
    maps_ = MapsByName(*object_);
    return checkKconfig(*object_, section("kconfig"));
  }

  Outcome<void> choosePrograms() {
    for (const auto& [name, request] : section("programs").items()) {
      const auto program = findProgram(*object_, name);
      if (!program) {
        return std::unexpected(program.error());
      }
      if (auto done = setProgramOptions(**program, request, "programs." + name); !done) {
        return done;
      }
      const auto attach = request.find("attach");
      if (attach != request.end() && attach->is_array() && !attach->empty() && !bpf_program__autoload(*program)) {
        return invalidParameter("programs." + name + ".attach",
                                "the program is not loaded unless it is enabled, so it cannot be attached");
      }
    }
    return {};
  }

  /// Before anything is loaded: whether its client, and all who list objects, can be told of the object.
  Outcome<void> checkDescription() {
    for (const struct bpf_program* program : autoloadedPrograms(*object_)) {
      const std::string_view section = bpf_program__section_name(program);
      if (auto done = describe(bpf_program__name(program), section.size()); !done) {
        return done;
      }
    }
    for (const auto& [name, map] : maps_.all()) {
      if (auto done = describe(name, 0); !done) {
        return done;
      }
    }
    return {};
  }

  /// Counts what one program, map or link takes in the object's description: its name, other text, and the rest.
  Outcome<void> describe(std::string_view name, std::size_t otherText) {
    constexpr std::size_t kNumbersAndNamesOfFields = 100;
    described_ += name.size() + otherText + kNumbersAndNamesOfFields;
    if (described_ <= limits_.descriptionBytes) {
      return {};
    }
    return std::unexpected(
        limitExceeded("the object has too many programs, maps and links, or too long names, to be described in " +
                          std::to_string(limits_.descriptionBytes) + " bytes; split it, or leave programs out",
                      "descriptionBytes", limits_.descriptionBytes));
  }

  Outcome<void> checkRelocations() { return given_->checkRelocations(*object_); }

  Outcome<void> makeImage() { return given_->makeImage(); }

  Outcome<void> changeMaps() {
    static const nlohmann::json kNone = nlohmann::json::object();
    const auto held = request_.find("heldMaps");
    mapOptions_.emplace(maps_, held == request_.end() ? kNone : *held, pinDirectory_, descriptors_);
    if (auto done = mapOptions_->apply(section("maps")); !done) {
      return done;
    }
    return checkArenaAddresses(maps_);
  }

  Outcome<void> setVariables() {
    const nlohmann::json& variables = section("variables");
    if (variables.empty()) {
      return {};
    }
    const struct btf* btf = bpf_object__btf(object_.get());
    for (const auto& [name, value] : variables.items()) {
      const auto place = findVariable(*object_, maps_, name);
      if (!place) {
        return std::unexpected(place.error());
      }
      if (auto done = writeVariable(*btf, place->typeId, value, place->memory, name); !done) {
        return done;
      }
    }
    return {};
  }

  Outcome<void> setTargets() {
    for (const auto& [name, request] : section("programs").items()) {
      const auto target = request.find("target");
      if (target == request.end() || !target->is_object()) {
        continue;
      }
      std::optional<BorrowedFd> targetProgram;
      if (const auto held = request_.find("targetPrograms"); held != request_.end() && held->contains(name)) {
        targetProgram = descriptors_.held(held->at(name));
      }
      struct bpf_program* program = bpf_object__find_program_by_name(object_.get(), name.c_str());
      auto set = setProgramTarget(*program, *target, "programs." + name + ".target", targetProgram);
      if (!set) {
        return std::unexpected(std::move(set.error()));
      }
      madeFor_[name] = std::move(*set);
    }
    return {};
  }

  Outcome<void> prepareVerifierLog() {
    verifierLog_.clear();
    const auto level = static_cast<std::uint32_t>(parameters_.value("verifierLogLevel", std::int64_t{0}));
    const auto programs = autoloadedPrograms(*object_);
    seam_.keepOfEachLog(std::min(limits_.verifierLogBytes, std::max(kLogsBytes, limits_.verifierLogBytes) /
                                                               std::max<std::size_t>(1, programs.size())));
    for (struct bpf_program* program : programs) {
      bpf_program__set_log_buf(program, verifierLog_.data(), VerifierLogBuffer::size());
      if (const std::uint32_t own = logLevelOf(*program, level); own != 0) {
        bpf_program__set_log_level(program, own);
      }
    }
    return {};
  }

  /// The level that the request has for `program`; `common` is the one for all.
  std::uint32_t logLevelOf(const struct bpf_program& program, std::uint32_t common) const {
    const nlohmann::json& programs = section("programs");
    const auto request = programs.find(bpf_program__name(&program));
    return request == programs.end() ? common : request->value("verifierLogLevel", common);
  }

  Outcome<void> load() {
    prepareForSingleProbes(*object_);
    const auto error = loadObject(*object_);
    if (!error) {
      return std::unexpected(error.error());
    }
    return *error == 0 ? Outcome<void>{} : std::unexpected(loadFailure(*error));
  }

  Failure loadFailure(int code) {
    nlohmann::json parameters;
    const SeamReport& report = seam_.report();
    std::string what = "cannot load the object";
    std::string why = errnoName(code) + " (" + std::strerror(code) + ")";
    std::string stage = "object";
    if (report.failedProgram) {
      stage = "program";
      what = "the kernel refuses program '" + *report.failedProgram + "'";
      parameters["program"] = *report.failedProgram;
      addVerifierLog(*report.failedProgram, code, why, parameters);
    } else if (report.failedMap) {
      stage = "map";
      what = "the kernel refuses map '" + *report.failedMap + "'";
      parameters["map"] = *report.failedMap;
      if (const std::string more = explain(code, BPF_PROG_TYPE_SOCKET_FILTER); !more.empty()) {
        why += ": " + more;
      }
    } else if (const auto cause = findLoadCause(*object_, code)) {
      what = cause->message + " (" + errnoName(code) + ")";
      why.clear();
      stage = cause->map.empty() ? "program" : "map";
      parameters[stage] = cause->map.empty() ? cause->program : cause->map;
    } else if (!log_.warnings().empty()) {
      // libbpf gave up before it asked the kernel; the first of its warnings is the nearest to the cause.
      stage = log_.warnings().front().find("relo") != std::string::npos ? "relocation" : "object";
      why += ": " + log_.warnings().front();
    }
    parameters["message"] = what + (why.empty() ? "" : ": ") + why;
    parameters["stage"] = stage;
    parameters["errno"] = code;
    parameters["errnoName"] = errnoName(code);
    if (!log_.warnings().empty()) {
      parameters["libbpfLog"] = log_.warnings();
    }
    return {"io.btfd.LoadFailed", std::move(parameters)};
  }

  void addVerifierLog(const std::string& program, int code, std::string& why, nlohmann::json& parameters) {
    const std::string_view log = verifierLog_.text();
    const Relocations& relocations = given_->relocations();
    if (const auto* relocation = relocations.reached(program, seam_.report().failedFunctions, log)) {
      why += ": it reaches code that " + std::string(relocations.whoLacksIt()) +
             " cannot satisfy: " + relocations.sentence(*relocation) +
             "; guard the code with bpf_core_field_exists() or the like";
      core::NearNames near = relocations.nearNames();
      parameters["relocations"] = nlohmann::json::array({relocations.record(*relocation, near)});
    } else if (const auto reason = rejectionReason(log); !reason.empty()) {
      why += ": " + std::string(reason);
      if (const auto instruction = findRejectedInstruction(log)) {
        why += ", in " + inWords(*instruction);
      }
    }
    if (const std::string hint = rejectionHint(log); !hint.empty()) {
      why += ": " + hint;
    }
    const struct bpf_program* refused = bpf_object__find_program_by_name(object_.get(), program.c_str());
    const auto type = refused == nullptr ? BPF_PROG_TYPE_UNSPEC : bpf_program__type(refused);
    if (const std::string more = explain(code, type); !more.empty()) {
      why += ": " + more;
    }
    if (!log.empty()) {
      parameters["verifierLog"] = logTail(log, limits_.verifierLogBytes);
    }
  }

  Outcome<void> attach() {
    const bool onlyCheck = parameters_.value("dryRun", false);
    for (const auto& [name, request] : section("programs").items()) {
      const auto targets = request.find("attach");
      if (targets == request.end() || !targets->is_array()) {
        continue;
      }
      struct bpf_program* program = bpf_object__find_program_by_name(object_.get(), name.c_str());
      for (std::size_t i = 0; i < targets->size(); ++i) {
        const std::string path = "programs." + name + ".attach[" + std::to_string(i) + "]";
        if (onlyCheck) {
          if (auto checked = checkTarget(maps_, *program, (*targets)[i], path, descriptors_); !checked) {
            return checked;
          }
          continue;
        }
        const auto madeFor = madeFor_.find(name);
        auto link = attachProgram(maps_, *program, (*targets)[i], path, descriptors_, log_,
                                  {.madeFor = madeFor == madeFor_.end() ? "" : madeFor->second});
        if (!link) {
          return std::unexpected(std::move(link.error()));
        }
        links_.emplace_back(name, std::move(*link));
        if (auto done = describe(name, links_.back().second.target.size()); !done) {
          return done;
        }
      }
    }
    return {};
  }

  void detachAll() {
    for (auto& [program, link] : links_) {
      detach(link);
    }
  }

  Outcome<JobReply> answer() {
    JobReply reply;
    nlohmann::json object;
    object["name"] = bpf_object__name(object_.get());
    object["digest"] = given_->digest();
    object["programs"] = nlohmann::json::array();
    for (const struct bpf_program* program : autoloadedPrograms(*object_)) {
      if (bpf_program__fd(program) >= 0) { // subprograms have none
        object["programs"].push_back(describeProgram(*program, reply));
        if (const auto madeFor = madeFor_.find(bpf_program__name(program)); madeFor != madeFor_.end()) {
          object["programs"].back()["madeFor"] = madeFor->second;
        }
      }
    }
    object["maps"] = nlohmann::json::array();
    nlohmann::json pinned = nlohmann::json::array();
    for (const auto& [name, map] : maps_.all()) {
      if (bpf_map__fd(map) >= 0 && bpf_map__autocreate(map)) {
        object["maps"].push_back(describeMap(name, *map, reply));
      }
      if (bpf_map__is_pinned(map)) {
        pinned.push_back(bpf_map__pin_path(map));
      }
    }
    object["links"] = nlohmann::json::array();
    for (auto& [program, link] : links_) {
      object["links"].push_back(describeLink(program, std::move(link), reply));
    }
    reply.body["object"] = std::move(object);
    reply.body["pinned"] = std::move(pinned);
    given_->moveImageTo(reply);
    if (!seam_.report().verifierLogs.empty()) {
      auto& logs = reply.body["verifierLogs"];
      for (const auto& [program, log] : seam_.report().verifierLogs) {
        logs[program] = log;
      }
    }
    reply.object = std::move(object_);
    return reply;
  }

  /// The request's field `name`, an object; an empty one where it is absent.
  const nlohmann::json& section(const char* name) const {
    static const nlohmann::json kEmpty = nlohmann::json::object();
    const auto found = parameters_.find(name);
    return found == parameters_.end() || !found->is_object() ? kEmpty : *found;
  }

  const nlohmann::json& request_;
  const nlohmann::json& parameters_;
  std::string pinDirectory_;
  RequestDescriptors& descriptors_;
  const JobLimits& limits_;
  VerifierLogBuffer& verifierLog_;
  std::size_t described_ = 0;
  object::LibbpfLog log_;
  SeamScope seam_;
  std::optional<ObjectToLoad> given_;
  ObjectHandle object_;
  MapsByName maps_;
  std::optional<MapOptions> mapOptions_;
  std::vector<std::pair<std::string, AttachedLink>> links_;
  /// By program: what it is made for instead of what its section says.
  std::map<std::string, std::string, std::less<>> madeFor_;
};

} // namespace

Outcome<JobReply> runLoadJob(const nlohmann::json& request, RequestDescriptors& descriptors, const JobLimits& limits,
                             VerifierLogBuffer& verifierLog) {
  return LoadJob(request, descriptors, limits, verifierLog).run();
}

} // namespace btfd::loader
