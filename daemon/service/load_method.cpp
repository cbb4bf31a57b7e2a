#include "load_method.h"

#include "anchors.h"
#include "answers.h"
#include "inline_object.h"
#include "load_request.h"
#include "map_references.h"
#include "object_json.h"
#include "target_programs.h"
#include "varlink/limits.h"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include <sys/stat.h>

namespace btfd::service {

using std::chrono::steady_clock;

namespace {

std::size_t descriptorCount(const registry::Object& object) {
  return object.programs.size() + object.maps.size() + object.links.size();
}

nlohmann::json makeReply(nlohmann::json object, nlohmann::json verifierLogs) {
  nlohmann::json reply;
  reply["object"] = std::move(object);
  if (!verifierLogs.is_null()) {
    reply["verifierLogs"] = std::move(verifierLogs);
  }
  return reply;
}

} // namespace

/// A Load under way.
struct LoadMethod::Request {
  varlink::Call call;
  varlink::Peer peer;
  registry::Labels labels;
  std::string name;
  bool dryRun = false;
  bool wantDescriptors = false;
  std::chrono::milliseconds deadline{};
  /// Whether it goes on after its first job.
  bool makingFilters = false;
  std::string kconfig;
  /// What was kept of the object that this one is thought to be.
  SharedImage guessed;
  steady_clock::time_point start = steady_clock::now();
};

/// Whether all who ask can be told of the object, and its client be given what it wants.
loader::Outcome<void> LoadMethod::checkDescription(const registry::Object& object, const Request& request) {
  if (object.describedBytes > kDescriptionLimit) {
    return std::unexpected(loader::limitExceeded(
        "the names of the object's programs, maps and links take " + std::to_string(object.describedBytes) +
            " bytes in a description, and one has at most " + std::to_string(kDescriptionLimit) +
            "; shorten the names, or split the object",
        "descriptionBytes", kDescriptionLimit));
  }
  if (request.wantDescriptors && !request.dryRun && descriptorCount(object) > varlink::kDescriptorLimit) {
    return std::unexpected(loader::limitExceeded(
        "the object has " + std::to_string(descriptorCount(object)) + " descriptors, and one answer carries at most " +
            std::to_string(varlink::kDescriptorLimit) +
            "; load it without wantDescriptors and get them by name with GetDescriptors",
        "descriptors", varlink::kDescriptorLimit));
  }
  return {};
}

void LoadMethod::call(varlink::Call call) {
  if (const auto invalid = checkLoad(call.parameters())) {
    call.invalidParameter(invalid->field, invalid->reason);
    return;
  }
  const auto deadline = deadlineOf(call, config_);
  if (!deadline) {
    return;
  }
  auto targets = findTargetPrograms(call, objects_.registry(), policy_);
  if (!targets) {
    return;
  }
  nlohmann::json parameters = call.takeParameters();
  if (const auto invalid = resolveAnchorsOfLoad(parameters, objects_.registry())) {
    call.invalidParameter(invalid->field, invalid->reason);
    return;
  }
  std::vector<UniqueFd> descriptors = takeAllDescriptors(call);
  if (const auto inlined = parameters.find("object"); inlined != parameters.end()) {
    auto memfd = decodeInlineObject(inlined->get_ref<const std::string&>());
    if (!memfd) {
      call.invalidParameter("object", memfd.error().message);
      return;
    }
    parameters.erase("object");
    parameters["objectFileDescriptor"] = descriptors.size();
    descriptors.push_back(std::move(*memfd));
  }

  const varlink::Peer peer = call.peer();
  auto request = std::make_shared<Request>(
      Request{.call = std::move(call), .peer = peer, .labels = {}, .name = {}, .kconfig = {}, .guessed = {}});
  request->labels = labelsOf(parameters);
  request->name = objectNameOf(parameters, descriptors);
  if (!request->name.empty()) {
    parameters["name"] = request->name;
  }
  request->kconfig = kconfigOf(parameters);
  request->dryRun = parameters.value("dryRun", false);
  request->wantDescriptors = parameters.value("wantDescriptors", false);
  request->deadline = *deadline;

  Job job{.body = {}, .descriptors = std::move(descriptors), .party = partyOf(peer), .deadline = *deadline, .done = {}};
  job.body["job"] = "load";
  job.body["parameters"] = std::move(parameters);
  job.body["kconfig"] = request->kconfig;
  job.body["pinDirectory"] = objects_.pinDirectoryOf(peer.uid);
  job.body["ofClient"] = job.descriptors.size(); // what comes behind them, no field of the client's can name
  if (auto added = addReferencedMaps(job, peer.uid, objects_.registry()); !added) {
    failed(request, added.error());
    return;
  }
  for (auto& [program, descriptor] : *targets) {
    job.body["targetPrograms"][program] = job.descriptors.size();
    job.descriptors.push_back(std::move(descriptor));
  }
  guessImage(*request, job);
  objects_.loadBegan(peer.uid);
  jobs_.submit(
      std::shared_ptr<varlink::Call>(request, &request->call), std::move(job),
      [this, request](JobSubmission::Outcome&& outcome) {
        if (outcome) {
          loaded(request, std::move(*outcome));
        } else {
          failed(request, outcome.error());
        }
        if (!request->makingFilters) {
          objects_.loadEnded(request->peer.uid);
        }
      },
      [this, owner = peer.uid] { objects_.loadEnded(owner); });
}

/// Lends the worker what was kept of the object, if it is one that was loaded before.
void LoadMethod::guessImage(Request& request, Job& job) {
  if (job.body["parameters"].contains("kernelBtfFileDescriptor")) {
    return; // what is kept is relocated for the running kernel's
  }
  const auto& spec = kernelBtf_.spec();
  auto image = images_.guess(request.peer.uid, request.name, spec ? spec->generation() : 0);
  if (!image) {
    return;
  }
  UniqueFd duplicate = BorrowedFd(*image->memfd).duplicate();
  if (!duplicate) {
    return; // it goes without
  }
  job.body["kept"]["digest"] = std::move(image->digest);
  job.body["kept"]["image"] = job.descriptors.size();
  job.descriptors.push_back(std::move(duplicate));
  request.guessed = std::move(image->memfd);
}

/// Gives `object` its image: the one that was guessed, or what the worker has made, which is kept for others then.
Result<void> LoadMethod::takeImage(Request& request, const nlohmann::json& answer, registry::Object& object) {
  if (!object.image) {
    object.image = std::move(request.guessed);
    object.relocated = true;
    object.imageReused = true;
    return object.image ? Result<void>{} : fail("a worker's answer has no image of the object", EPROTO);
  }
  const auto generation = answer.find("generation");
  struct stat status{};
  if (object.relocated && generation != answer.end() && generation->is_number_unsigned() &&
      ::fstat(object.image->get(), &status) == 0) {
    images_.keep(request.peer.uid, request.name,
                 {.digest = object.digest,
                  .generation = generation->get<std::uint64_t>(),
                  .bytes = static_cast<std::size_t>(status.st_size),
                  .memfd = object.image},
                 config_.cache.maxBytes);
  }
  return {};
}

void LoadMethod::loaded(const std::shared_ptr<Request>& request, loader::ChannelMessage message) {
  auto object = takeObject(message);
  if (object) {
    if (auto taken = takeImage(*request, message.body, *object); !taken) {
      object = std::unexpected(std::move(taken.error()));
    }
  }
  if (!object) {
    spdlog::error("{}", object.error().message);
    request->call.systemError(EPROTO);
    return;
  }
  object->labels = std::move(request->labels);
  object->kconfig = std::move(request->kconfig);
  object->owner = request->peer.uid;
  object->connection = request->peer.connection;
  object->loadedAt = std::chrono::system_clock::now();
  object->loadDuration = std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - request->start);
  if (!request->name.empty()) {
    object->name = request->name; // libbpf's has only what may be in a map's name
  }
  object->describedBytes = describedBytes(*object);
  if (auto fits = checkDescription(*object, *request); !fits) {
    undo(request, std::move(*object), std::move(fits.error()));
    return;
  }
  nlohmann::json verifierLogs; // megabytes, which are not copied
  if (const auto logs = message.body.find("verifierLogs"); logs != message.body.end()) {
    verifierLogs = std::move(*logs);
  }
  if (request->dryRun) {
    answerDryRun(request, std::move(*object), std::move(verifierLogs));
  } else if (TcFilters::anyIn(object->links)) {
    makeFilters(request, std::move(*object), std::move(verifierLogs));
  } else {
    record(request, std::move(*object), std::move(verifierLogs));
  }
}

/// The worker has only planned them.
void LoadMethod::makeFilters(const std::shared_ptr<Request>& request, registry::Object object,
                             nlohmann::json verifierLogs) {
  auto kept = std::make_shared<registry::Object>(std::move(object));
  std::vector<TcFilters::Planned> planned;
  for (registry::Link& link : kept->links) {
    if (!link.filter) {
      continue;
    }
    const registry::Program* program = kept->findProgram(link.program);
    UniqueFd descriptor = program == nullptr ? UniqueFd() : BorrowedFd(program->descriptor).duplicate();
    if (!descriptor) {
      const int error = program == nullptr ? EPROTO : errno;
      static_cast<void>(TcFilters::takeFrom(kept->links)); // none is made
      undo(request, std::move(*kept), failureOf(Error::fromErrno("no descriptor for a program", error)));
      return;
    }
    planned.push_back({.link = &link, .program = std::move(descriptor)});
  }
  request->makingFilters = true;
  objects_.filters().attach(
      std::move(planned), partyOf(request->peer), request->deadline,
      [this, request, kept, logs = std::move(verifierLogs)](const loader::Outcome<void>& made) mutable {
        if (!made) {
          undo(request, std::move(*kept), made.error());
        } else if (!request->call.connected()) {
          undo(request, std::move(*kept), failureOf(Error::fromErrno("the client is gone", ECONNRESET)));
        } else {
          record(request, std::move(*kept), std::move(logs));
        }
        objects_.loadEnded(request->peer.uid);
      });
}

void LoadMethod::record(const std::shared_ptr<Request>& request, registry::Object object, nlohmann::json verifierLogs) {
  // Before it is recorded: an object that its client cannot be told of must not stay.
  objects_.registry().giveIds(object);
  AnswerDescriptors descriptors(request->wantDescriptors);
  auto prepared =
      prepareAnswer(request->call, makeReply(toJson(object, descriptors), std::move(verifierLogs)), descriptors);
  if (!prepared) {
    undo(request, std::move(object), std::move(prepared.error()));
    return;
  }
  const registry::Object& recorded = objects_.registry().add(std::move(object));
  spdlog::info("user {} (pid {}) loaded {}: {} programs, {} maps, {} links", request->peer.uid, request->peer.pid,
               quoted(recorded), recorded.programs.size(), recorded.maps.size(), recorded.links.size());
  events_.emit("loaded", "loaded " + quoted(recorded), eventOf(recorded, request->peer.uid));
  request->call.reply(std::move(*prepared));
}

void LoadMethod::answerDryRun(const std::shared_ptr<Request>& request, registry::Object object,
                              nlohmann::json verifierLogs) {
  AnswerDescriptors none(false);
  auto reply = std::make_shared<nlohmann::json>(makeReply(toJson(object, none), std::move(verifierLogs)));
  objects_.dismantle(std::move(object), [request, reply] { request->call.reply(*reply); });
}

/// Drops an object that is loaded, but cannot stay.
void LoadMethod::undo(const std::shared_ptr<Request>& request, registry::Object object, loader::Failure failure) {
  objects_.dismantle(std::move(object), [this, request, kept = std::move(failure)] { failed(request, kept); });
}

void LoadMethod::failed(const std::shared_ptr<Request>& request, const loader::Failure& failure) {
  const std::string& name = request->name;
  const std::string why = loader::describe(failure);
  spdlog::info("user {} (pid {}) could not load {}: {}", request->peer.uid, request->peer.pid,
               name.empty() ? "an object without a name" : "'" + name + "'", why);
  nlohmann::json event;
  event["uid"] = request->peer.uid;
  if (!name.empty()) {
    event["objectName"] = name;
  }
  events_.emit("loadFailed", "could not load " + (name.empty() ? "an object" : "'" + name + "'") + ": " + why,
               std::move(event));
  answerFailure(request->call, failure);
}

} // namespace btfd::service
