#include "loader_service.h"

#include "answers.h"
#include "descriptor_selection.h"
#include "inline_object.h"
#include "load_request.h"
#include "object_json.h"
#include "varlink/limits.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include <fcntl.h>
#include <sys/utsname.h>

namespace btfd::service {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr std::string_view kNoKernelBtf = "io.btfd.NoKernelBtf";

/// Whose turn it is: all jobs of one user, but each connection of root for itself, since root's are different services.
Party partyOf(const varlink::Peer& peer) {
  return peer.uid == 0 ? Party{0, peer.connection} : Party{peer.uid, 0};
}

nlohmann::json eventOf(const registry::Object& object, uid_t uid) {
  nlohmann::json event;
  if (object.id != 0) {
    event["objectId"] = object.id;
  }
  event["objectName"] = object.name;
  event["uid"] = uid;
  return event;
}

std::string quoted(const registry::Object& object) {
  return "object " + std::to_string(object.id) + " '" + object.name + "'";
}

UniqueFd duplicateOf(BorrowedFd descriptor) {
  return UniqueFd(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 3));
}

/// Answers with `json` and duplicates of the descriptors that it refers to.
void answer(varlink::Call& call, const nlohmann::json& json, const AnswerDescriptors& descriptors) {
  auto duplicates = varlink::duplicate(descriptors.all());
  if (!duplicates) {
    call.systemError(duplicates.error().code);
    return;
  }
  call.reply(json, std::move(*duplicates));
}

std::size_t descriptorCount(const registry::Object& object) {
  return object.programs.size() + object.maps.size() + object.links.size();
}

std::string messageOf(const loader::Failure& failure) {
  const auto message = failure.parameters.find("message");
  return message == failure.parameters.end() || !message->is_string() ? failure.error : message->get<std::string>();
}

} // namespace

/// A Load under way.
struct LoaderService::LoadRequest {
  varlink::Call call;
  varlink::Peer peer;
  registry::Labels labels;
  std::string name;
  bool dryRun = false;
  bool wantDescriptors = false;
  steady_clock::time_point start = steady_clock::now();
  milliseconds deadline{};
};

/// An Attach under way.
struct LoaderService::AttachRequest {
  varlink::Call call;
  varlink::Peer peer;
  std::uint64_t objectId = 0;
  bool wantDescriptors = false;
  steady_clock::time_point start = steady_clock::now();
  milliseconds deadline{};
};

LoaderService::LoaderService(Parts parts)
    : config_(parts.config), policy_(parts.policy), workers_(parts.workers), kernelBtf_(parts.kernelBtf),
      events_(parts.events), pins_(parts.config.bpffs) {}

void LoaderService::addTo(varlink::Service& service) {
  const auto add = [&](std::string_view method, void (LoaderService::*handler)(varlink::Call)) {
    service.add("io.btfd", method, [this, handler](varlink::Call call) { (this->*handler)(std::move(call)); });
  };
  add("Load", &LoaderService::load);
  add("Unload", &LoaderService::unload);
  add("Attach", &LoaderService::attach);
  add("Detach", &LoaderService::detach);
  add("List", &LoaderService::list);
  add("Describe", &LoaderService::describe);
  add("GetDescriptors", &LoaderService::getDescriptors);
  add("DescribeKernel", &LoaderService::describeKernel);
  service.add("io.btfd", "Monitor", [this](varlink::Call call) { events_.subscribe(std::move(call)); });
}

// ---- Load
// -------------------------------------------------------------------------------------------------------------

void LoaderService::load(varlink::Call call) {
  if (const auto invalid = checkLoad(call.parameters())) {
    call.invalidParameter(invalid->field, invalid->reason);
    return;
  }
  const auto deadline = deadlineOf(call);
  if (!deadline) {
    return;
  }
  nlohmann::json parameters = call.takeParameters();
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
  auto request =
      std::make_shared<LoadRequest>(LoadRequest{.call = std::move(call), .peer = peer, .labels = {}, .name = {}});
  request->labels = labelsOf(parameters);
  request->name = parameters.value("name", "");
  request->dryRun = parameters.value("dryRun", false);
  request->wantDescriptors = parameters.value("wantDescriptors", false);
  request->deadline = *deadline;

  Job job{.body = {}, .descriptors = std::move(descriptors), .party = partyOf(peer), .deadline = *deadline, .done = {}};
  job.body["job"] = "load";
  job.body["parameters"] = std::move(parameters);
  job.body["pinDirectory"] = pins_.directoryOf(peer.uid);
  ++loadsUnderWay_[peer.uid];
  submitLoad(request, std::move(job));
}

void LoaderService::submitLoad(const std::shared_ptr<LoadRequest>& request, Job job) {
  job.done = [this, request](loader::Outcome<loader::ChannelMessage> outcome, Job done) {
    loadDone(request, std::move(outcome), std::move(done));
  };
  const auto id = workers_.submit(std::move(job));
  request->call.onDisconnect([this, id, owner = request->peer.uid] {
    workers_.cancel(id);
    loadEnded(owner);
  });
}

void LoaderService::loadDone(const std::shared_ptr<LoadRequest>& request,
                             loader::Outcome<loader::ChannelMessage> outcome, Job job) {
  request->call.onDisconnect({});
  if (!outcome && outcome.error().error == kNoKernelBtf) {
    auto again = [this, request, kept = std::make_shared<Job>(std::move(job))] {
      const auto spent = std::chrono::duration_cast<milliseconds>(steady_clock::now() - request->start);
      kept->deadline = std::max(milliseconds{1}, request->deadline - spent);
      submitLoad(request, std::move(*kept));
    };
    provideKernelBtf(std::move(again), [this, request](const std::string& reason) {
      loader::Failure failure{std::string(kNoKernelBtf), {}};
      failure.parameters["message"] = "the object needs kernel BTF, but " + reason;
      loadEnded(request->peer.uid);
      loadFailed(request, failure);
    });
    return;
  }
  if (outcome) {
    loaded(request, std::move(*outcome));
  } else {
    loadFailed(request, outcome.error());
  }
  loadEnded(request->peer.uid);
}

void LoaderService::loaded(const std::shared_ptr<LoadRequest>& request, loader::ChannelMessage message) {
  auto object = takeObject(message);
  if (!object) {
    spdlog::error("{}", object.error().message);
    request->call.systemError(EPROTO);
    return;
  }
  object->labels = std::move(request->labels);
  object->owner = request->peer.uid;
  object->connection = request->peer.connection;
  object->loadedAt = std::chrono::system_clock::now();
  object->loadDuration = std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - request->start);
  if (!request->name.empty()) {
    object->name = request->name; // libbpf's has only what may be in a map's name
  }
  nlohmann::json verifierLogs = message.body.value("verifierLogs", nlohmann::json());
  if (request->dryRun) {
    answerDryRun(request, std::move(*object), std::move(verifierLogs));
    return;
  }
  if (request->wantDescriptors && descriptorCount(*object) > varlink::kDescriptorLimit) {
    const std::string count = std::to_string(descriptorCount(*object));
    dismantle(std::move(*object), [request, count] {
      answerLimitExceeded(request->call,
                          "the object has " + count + " descriptors, and one answer carries at most " +
                              std::to_string(varlink::kDescriptorLimit) +
                              "; load it without wantDescriptors and get them by name with GetDescriptors",
                          "descriptors", varlink::kDescriptorLimit);
    });
    return;
  }
  const registry::Object& recorded = registry_.add(std::move(*object));
  spdlog::info("user {} (pid {}) loaded {}: {} programs, {} maps, {} links", request->peer.uid, request->peer.pid,
               quoted(recorded), recorded.programs.size(), recorded.maps.size(), recorded.links.size());
  events_.emit("loaded", "loaded " + quoted(recorded), eventOf(recorded, request->peer.uid));
  AnswerDescriptors descriptors(request->wantDescriptors);
  nlohmann::json reply;
  reply["object"] = toJson(recorded, descriptors);
  if (!verifierLogs.is_null()) {
    reply["verifierLogs"] = std::move(verifierLogs);
  }
  answer(request->call, reply, descriptors);
}

void LoaderService::answerDryRun(const std::shared_ptr<LoadRequest>& request, registry::Object object,
                                 nlohmann::json verifierLogs) {
  AnswerDescriptors none(false);
  auto reply = std::make_shared<nlohmann::json>();
  (*reply)["object"] = toJson(object, none);
  if (!verifierLogs.is_null()) {
    (*reply)["verifierLogs"] = std::move(verifierLogs);
  }
  dismantle(std::move(object), [request, reply] { request->call.reply(*reply); });
}

void LoaderService::loadFailed(const std::shared_ptr<LoadRequest>& request, const loader::Failure& failure) {
  spdlog::info("user {} (pid {}) could not load '{}': {}", request->peer.uid, request->peer.pid, request->name,
               messageOf(failure));
  nlohmann::json event;
  event["uid"] = request->peer.uid;
  if (!request->name.empty()) {
    event["objectName"] = request->name;
  }
  events_.emit("loadFailed", messageOf(failure), std::move(event));
  request->call.error(failure.error, failure.parameters);
}

void LoaderService::provideKernelBtf(std::function<void()> again, std::function<void(const std::string&)> failed) {
  kernelBtf_.ensure([again = std::move(again), failed = std::move(failed)](const auto& spec) {
    if (spec) {
      again();
    } else {
      failed(spec.error().message);
    }
  });
}

void LoaderService::loadEnded(uid_t owner) {
  const auto count = loadsUnderWay_.find(owner);
  if (count != loadsUnderWay_.end() && --count->second == 0) {
    loadsUnderWay_.erase(count);
    sweepPins(owner);
  }
}

void LoaderService::sweepPins(uid_t owner) {
  if (!loadsUnderWay_.contains(owner)) {
    pins_.sweep(owner, registry_);
  }
}

void LoaderService::removeStalePins() {
  pins_.sweepAll(registry_);
}

void LoaderService::removePinDirectory() {
  pins_.removeDirectory();
}

// ---- Attach
// -----------------------------------------------------------------------------------------------------------

void LoaderService::attach(varlink::Call call) {
  const auto objectId = call.parameters().at("objectId").get<std::int64_t>();
  const registry::Object* object = findOwned(call, objectId);
  if (object == nullptr) {
    return;
  }
  const auto deadline = deadlineOf(call);
  if (!deadline) {
    return;
  }
  nlohmann::json parameters = call.takeParameters();
  const auto name = parameters.at("program").get<std::string>();
  const registry::Program* program = object->findProgram(name);
  if (program == nullptr) {
    std::vector<std::string> known;
    std::ranges::transform(object->programs, std::back_inserter(known), &registry::Program::name);
    const auto failure = loader::noSuchName("program", name, known).error();
    call.error(failure.error, failure.parameters);
    return;
  }

  // The client's descriptors first, so that the target's indexes stay what they are.
  std::vector<UniqueFd> descriptors = takeAllDescriptors(call);
  const auto add = [&](BorrowedFd descriptor) {
    descriptors.push_back(duplicateOf(descriptor));
    return descriptors.size() - 1;
  };
  nlohmann::json body;
  body["job"] = "attach";
  body["name"] = object->name;
  body["program"] = name;
  body["target"] = parameters.value("target", nlohmann::json::object());
  body["image"] = add(object->image);
  body["programDescriptor"] = add(program->descriptor);
  body["maps"] = nlohmann::json::object();
  for (const registry::Map& map : object->maps) {
    body["maps"][map.name] = add(map.descriptor);
  }

  const varlink::Peer peer = call.peer();
  auto request = std::make_shared<AttachRequest>(AttachRequest{.call = std::move(call), .peer = peer});
  request->objectId = static_cast<std::uint64_t>(objectId);
  request->wantDescriptors = parameters.value("wantDescriptors", false);
  request->deadline = *deadline;
  submitAttach(request, Job{.body = std::move(body),
                            .descriptors = std::move(descriptors),
                            .party = partyOf(peer),
                            .deadline = *deadline,
                            .done = {}});
}

void LoaderService::submitAttach(const std::shared_ptr<AttachRequest>& request, Job job) {
  job.done = [this, request](loader::Outcome<loader::ChannelMessage> outcome, Job done) {
    attachDone(request, std::move(outcome), std::move(done));
  };
  const auto id = workers_.submit(std::move(job));
  request->call.onDisconnect([this, id] { workers_.cancel(id); });
}

void LoaderService::attachDone(const std::shared_ptr<AttachRequest>& request,
                               loader::Outcome<loader::ChannelMessage> outcome, Job job) {
  request->call.onDisconnect({});
  if (outcome) {
    attached(request, std::move(*outcome));
    return;
  }
  if (outcome.error().error != kNoKernelBtf) {
    request->call.error(outcome.error().error, outcome.error().parameters);
    return;
  }
  auto again = [this, request, kept = std::make_shared<Job>(std::move(job))] {
    const auto spent = std::chrono::duration_cast<milliseconds>(steady_clock::now() - request->start);
    kept->deadline = std::max(milliseconds{1}, request->deadline - spent);
    submitAttach(request, std::move(*kept));
  };
  provideKernelBtf(std::move(again), [request](const std::string& reason) {
    nlohmann::json fields;
    fields["message"] = "attaching needs kernel BTF, but " + reason;
    request->call.error(kNoKernelBtf, fields);
  });
}

void LoaderService::attached(const std::shared_ptr<AttachRequest>& request, loader::ChannelMessage message) {
  auto link = takeLink(message);
  if (!link) {
    spdlog::error("{}", link.error().message);
    request->call.systemError(EPROTO);
    return;
  }
  registry::Object* object = registry_.find(request->objectId);
  if (object == nullptr || !request->call.connected()) {
    // Unloaded, or the client went away, while the worker attached: the link has nobody to belong to.
    registry::Object orphan;
    orphan.owner = request->peer.uid;
    orphan.links.push_back(std::move(*link));
    dismantle(std::move(orphan),
              [request] { answerNoSuchObject(request->call, static_cast<std::int64_t>(request->objectId)); });
    return;
  }
  const registry::Link& recorded = registry_.addLink(*object, std::move(*link));
  const std::string what = "attached program '" + recorded.program + "' of " + quoted(*object) + " to " +
                           recorded.kind + " " + recorded.target;
  spdlog::info("user {} (pid {}) {}", request->peer.uid, request->peer.pid, what);
  nlohmann::json event = eventOf(*object, request->peer.uid);
  event["linkId"] = recorded.id;
  events_.emit("attached", what, std::move(event));
  AnswerDescriptors descriptors(request->wantDescriptors);
  nlohmann::json reply;
  reply["link"] = toJson(recorded, descriptors);
  answer(request->call, reply, descriptors);
}

// ---- Ends
// -------------------------------------------------------------------------------------------------------------

void LoaderService::unload(varlink::Call call) {
  const auto id = call.parameters().at("objectId").get<std::int64_t>();
  if (findOwned(call, id) == nullptr) {
    return;
  }
  registry::Object object = std::move(*registry_.take(static_cast<std::uint64_t>(id)));
  spdlog::info("user {} (pid {}) unloaded {}", call.peer().uid, call.peer().pid, quoted(object));
  events_.emit("unloaded", "unloaded " + quoted(object), eventOf(object, call.peer().uid));
  auto kept = std::make_shared<varlink::Call>(std::move(call));
  dismantle(std::move(object), [kept] { kept->reply(); });
}

void LoaderService::detach(varlink::Call call) {
  const auto id = call.parameters().at("linkId").get<std::int64_t>();
  const registry::Object* object = registry_.findByLink(static_cast<std::uint64_t>(id));
  if (object == nullptr) {
    answerNoSuchLink(call, id);
    return;
  }
  if (!policy_.mayChange(call.peer(), object->owner)) {
    answerNotOwner(call, *object);
    return;
  }
  registry::Object detached;
  detached.owner = object->owner;
  detached.links.push_back(std::move(*registry_.takeLink(static_cast<std::uint64_t>(id))));
  nlohmann::json event = eventOf(*object, call.peer().uid);
  event["linkId"] = id;
  events_.emit("detached", "detached program '" + detached.links.front().program + "' of " + quoted(*object),
               std::move(event));
  auto kept = std::make_shared<varlink::Call>(std::move(call));
  dismantle(std::move(detached), [kept] { kept->reply(); });
}

void LoaderService::connectionClosed(const varlink::Peer& peer) {
  for (const std::uint64_t id : registry_.idsOfConnection(peer.connection)) {
    registry::Object object = std::move(*registry_.take(id));
    spdlog::info("{} of user {} (pid {}) ended with its session", quoted(object), peer.uid, peer.pid);
    events_.emit("unloaded", quoted(object) + " ended with its session", eventOf(object, peer.uid));
    dismantle(std::move(object), [] {});
  }
}

void LoaderService::unloadAll(std::function<void()> then) {
  auto remaining = std::make_shared<std::size_t>(registry_.objects().size() + 1);
  auto one = [remaining, then = std::move(then)] {
    if (--*remaining == 0) {
      then();
    }
  };
  while (!registry_.objects().empty()) {
    dismantle(std::move(*registry_.take(registry_.objects().begin()->first)), one);
  }
  one();
}

void LoaderService::dismantle(registry::Object object, std::function<void()> then) {
  nlohmann::json body;
  std::vector<UniqueFd> descriptors;
  for (registry::Link& link : object.links) {
    nlohmann::json entry;
    entry["detachBySocketOption"] = link.detachBySocketOption;
    entry["descriptors"] = nlohmann::json::array();
    for (UniqueFd& descriptor : link.descriptors) {
      entry["descriptors"].push_back(descriptors.size());
      descriptors.push_back(std::move(descriptor));
    }
    body["links"].push_back(std::move(entry));
  }
  for (registry::Program& program : object.programs) {
    descriptors.push_back(std::move(program.descriptor));
  }
  for (registry::Map& map : object.maps) {
    descriptors.push_back(std::move(map.descriptor));
  }
  workers_.release(std::move(body), std::move(descriptors),
                   [this, owner = object.owner, pinned = !object.pinned.empty(), then = std::move(then)] {
                     if (pinned) {
                       sweepPins(owner);
                     }
                     then();
                   });
}

// ---- Questions
// --------------------------------------------------------------------------------------------------------

void LoaderService::list(varlink::Call call) {
  const registry::Labels wanted = labelsOf(call.parameters());
  const auto name = call.parameters().find("name");
  nlohmann::json reply;
  auto& objects = reply["objects"] = nlohmann::json::array();
  for (const auto& [id, object] : registry_.objects()) {
    const bool labelled = std::ranges::all_of(wanted, [&labels = object.labels](const auto& label) {
      const auto found = labels.find(label.first);
      return found != labels.end() && found->second == label.second;
    });
    if (labelled && (name == call.parameters().end() || *name == object.name)) {
      AnswerDescriptors none(false);
      objects.push_back(toJson(object, none));
    }
  }
  call.reply(reply);
}

void LoaderService::describe(varlink::Call call) {
  const auto id = call.parameters().at("objectId").get<std::int64_t>();
  const registry::Object* object = registry_.find(static_cast<std::uint64_t>(id));
  if (object == nullptr) {
    answerNoSuchObject(call, id);
    return;
  }
  AnswerDescriptors none(false);
  nlohmann::json reply;
  reply["object"] = toJson(*object, none);
  call.reply(reply);
}

void LoaderService::getDescriptors(varlink::Call call) {
  const auto id = call.parameters().at("objectId").get<std::int64_t>();
  const registry::Object* object = findOwned(call, id);
  if (object == nullptr) {
    return;
  }
  auto selected = selectDescriptors(*object, call.parameters());
  if (!selected) {
    call.error(selected.error().error, selected.error().parameters);
    return;
  }
  if (selected->descriptors.all().size() > varlink::kDescriptorLimit) {
    answerLimitExceeded(call,
                        std::to_string(selected->descriptors.all().size()) +
                            " descriptors do not fit an answer, which carries at most " +
                            std::to_string(varlink::kDescriptorLimit) + "; name fewer programs and maps",
                        "descriptors", varlink::kDescriptorLimit);
    return;
  }
  nlohmann::json reply;
  reply["descriptors"] = std::move(selected->entries);
  answer(call, reply, selected->descriptors);
}

void LoaderService::describeKernel(varlink::Call call) {
  struct utsname name{};
  ::uname(&name);
  nlohmann::json reply;
  reply["release"] = name.release;
  reply["buildCount"] = kernelBtf_.buildCount();
  if (kernelBtf_.spec()) {
    reply["spec"] = toJson(*kernelBtf_.spec());
  } else {
    reply["reason"] = kernelBtf_.reason();
  }
  call.reply(reply);
}

// ---- Shared
// -----------------------------------------------------------------------------------------------------------

registry::Object* LoaderService::findOwned(varlink::Call& call, std::int64_t id) {
  registry::Object* object = registry_.find(static_cast<std::uint64_t>(id));
  if (object == nullptr) {
    answerNoSuchObject(call, id);
    return nullptr;
  }
  if (!policy_.mayChange(call.peer(), object->owner)) {
    answerNotOwner(call, *object);
    return nullptr;
  }
  return object;
}

std::optional<milliseconds> LoaderService::deadlineOf(varlink::Call& call) {
  const auto given = call.parameters().find("deadlineMs");
  if (given == call.parameters().end()) {
    return config_.limits.deadline;
  }
  const auto deadline = given->get<std::int64_t>();
  if (deadline <= 0 || deadline > config_.limits.maximumDeadline.count()) {
    call.invalidParameter("deadlineMs", "has to be between 1 and " +
                                            std::to_string(config_.limits.maximumDeadline.count()) +
                                            " (limits.maximumDeadlineMs)");
    return std::nullopt;
  }
  return milliseconds{deadline};
}

} // namespace btfd::service
