#include "attach_method.h"

#include "anchors.h"
#include "answers.h"
#include "base/text.h"
#include "load_request.h"
#include "object_json.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <utility>

namespace btfd::service {

namespace {

loader::Failure noSuchProgram(const registry::Object& object, const std::string& name) {
  std::vector<std::string> known;
  std::ranges::transform(object.programs, std::back_inserter(known), &registry::Program::name);
  loader::Failure failure = loader::noSuchName("program", name, known).error();
  // The file may have it.
  failure.parameters["message"] = failure.parameters["message"].get<std::string>() +
                                  " (a program whose section says SEC(\"?...\") is loaded only if Load enables it)";
  return failure;
}

/// What the daemon holds of an object and its job needs, behind the client's descriptors, so that the indexes of these
/// stay what they are.
Result<void> addHeld(const registry::Object& object, const registry::Program& program, Job& job) {
  std::vector<BorrowedFd> held{*object.image, program.descriptor};
  const std::size_t first = job.descriptors.size();
  job.body["ofClient"] = first;
  job.body["image"] = first;
  job.body["relocated"] = object.relocated;
  job.body["kconfig"] = object.kconfig;
  job.body["programType"] = program.type;
  job.body["attachType"] = program.attachType;
  job.body["programDescriptor"] = first + 1;
  job.body["madeFor"] = program.madeFor;
  job.body["maps"] = nlohmann::json::object();
  for (const registry::Map& map : object.maps) {
    job.body["maps"][map.name] = first + held.size();
    held.emplace_back(map.descriptor);
  }
  auto duplicates = varlink::duplicate(held);
  if (!duplicates) {
    return std::unexpected(std::move(duplicates.error()));
  }
  std::ranges::move(*duplicates, std::back_inserter(job.descriptors));
  return {};
}

} // namespace

/// An Attach under way.
struct AttachMethod::Request {
  varlink::Call call;
  varlink::Peer peer;
  std::uint64_t objectId = 0;
  /// What is to be attached, in words, and the event that tells of a failure: the object may be gone by then.
  std::string subject;
  nlohmann::json event;
  bool wantDescriptors = false;
  std::chrono::milliseconds deadline{};
  bool isUsdt = false;
  Job job;
};

void AttachMethod::call(varlink::Call call) {
  const auto objectId = call.parameters().at("objectId").get<std::int64_t>();
  const registry::Object* object = findOwned(call, objectId, objects_.registry(), policy_);
  if (object == nullptr) {
    return;
  }
  const auto deadline = deadlineOf(call, config_);
  if (!deadline) {
    return;
  }
  nlohmann::json parameters = call.takeParameters();
  if (const auto target = parameters.find("target"); target != parameters.end()) {
    if (const auto invalid = resolveAnchors(*target, "target", objects_.registry())) {
      call.invalidParameter(invalid->field, invalid->reason);
      return;
    }
  }
  const auto name = parameters.at("program").get<std::string>();
  const varlink::Peer peer = call.peer();
  std::vector<UniqueFd> descriptors = takeAllDescriptors(call);
  auto request =
      std::make_shared<Request>(Request{.call = std::move(call), .peer = peer, .subject = {}, .event = {}, .job = {}});
  request->objectId = static_cast<std::uint64_t>(objectId);
  request->subject = "program " + quotedName(name) + " of " + quoted(*object);
  request->event = eventOf(*object, peer.uid);
  request->wantDescriptors = parameters.value("wantDescriptors", false);
  request->deadline = *deadline;
  const registry::Program* program = object->findProgram(name);
  if (program == nullptr) {
    failed(request, noSuchProgram(*object, name));
    return;
  }

  request->isUsdt = program->section.starts_with("usdt");
  Job& job = request->job;
  job.descriptors = std::move(descriptors);
  job.party = partyOf(peer);
  job.deadline = *deadline;
  job.body["job"] = "attach";
  job.body["name"] = object->name;
  job.body["program"] = name;
  job.body["target"] = parameters.value("target", nlohmann::json::object());
  if (const auto added = addHeld(*object, *program, job); !added) {
    failed(request, failureOf(added.error()));
    return;
  }
  submit(request);
}

void AttachMethod::submit(const std::shared_ptr<Request>& request) {
  if (request->isUsdt) {
    const auto [waiting, first] = usdt_.try_emplace(request->objectId);
    if (!first) {
      waiting->second.push_back(request);
      return;
    }
  }
  start(request);
}

void AttachMethod::start(const std::shared_ptr<Request>& request) {
  const registry::Object* object = objects_.registry().find(request->objectId);
  if (request->isUsdt && object != nullptr) {
    auto& used = request->job.body["usdtSpecs"] = nlohmann::json::array();
    for (const registry::Link& link : object->links) {
      std::ranges::copy(link.usdtSpecs, std::back_inserter(used));
    }
  }
  jobs_.submit(
      std::shared_ptr<varlink::Call>(request, &request->call), std::move(request->job),
      [this, request](JobSubmission::Outcome&& outcome) {
        if (outcome) {
          attached(request, std::move(*outcome));
        } else {
          failed(request, outcome.error());
        }
        ended(*request);
      },
      [this, request] { ended(*request); });
}

void AttachMethod::ended(const Request& request) {
  const auto waiting = request.isUsdt ? usdt_.find(request.objectId) : usdt_.end();
  if (waiting == usdt_.end()) {
    return;
  }
  if (waiting->second.empty()) {
    usdt_.erase(waiting);
    return;
  }
  const std::shared_ptr<Request> next = std::move(waiting->second.front());
  waiting->second.pop_front();
  start(next);
}

void AttachMethod::attached(const std::shared_ptr<Request>& request, loader::ChannelMessage message) {
  auto link = takeLink(message);
  if (!link) {
    spdlog::error("{}", link.error().message);
    request->call.systemError(EPROTO);
    return;
  }
  if (link->filter) {
    makeFilter(request, std::move(*link));
  } else {
    record(request, std::move(*link));
  }
}

/// The worker has only planned it.
void AttachMethod::makeFilter(const std::shared_ptr<Request>& request, registry::Link link) {
  const registry::Object* object = objects_.registry().find(request->objectId);
  const registry::Program* program = object == nullptr ? nullptr : object->findProgram(link.program);
  if (program == nullptr) {
    failed(request, noSuchObject(static_cast<std::int64_t>(request->objectId)));
    return;
  }
  UniqueFd descriptor = BorrowedFd(program->descriptor).duplicate();
  if (!descriptor) {
    failed(request, failureOf(Error::fromErrno("no descriptor for a program", errno)));
    return;
  }
  auto kept = std::make_shared<registry::Link>(std::move(link));
  std::vector<TcFilters::Planned> planned;
  planned.push_back({.link = kept.get(), .program = std::move(descriptor)});
  objects_.filters().attach(std::move(planned), partyOf(request->peer), request->deadline,
                            [this, request, kept](const loader::Outcome<void>& made) {
                              if (made) {
                                record(request, std::move(*kept));
                              } else {
                                failed(request, made.error());
                              }
                            });
}

void AttachMethod::record(const std::shared_ptr<Request>& request, registry::Link link) {
  registry::Object* object = objects_.registry().find(request->objectId);
  if (object == nullptr || !request->call.connected()) {
    // Unloaded, or the client went away, while the worker attached: the link has nobody to belong to.
    undo(request, std::move(link), noSuchObject(static_cast<std::int64_t>(request->objectId)));
    return;
  }
  // Before it is recorded: a link that its client cannot be told of must not stay.
  objects_.registry().giveId(link);
  const std::size_t bytes = describedBytes(link);
  if (object->describedBytes + bytes > kDescriptionLimit) {
    undo(request, std::move(link),
         loader::limitExceeded("with this link, the description of " + quoted(*object) + " would take more than " +
                                   std::to_string(kDescriptionLimit) + " bytes; detach others of its " +
                                   std::to_string(object->links.size()) + " links",
                               "descriptionBytes", kDescriptionLimit));
    return;
  }
  AnswerDescriptors descriptors(request->wantDescriptors);
  nlohmann::json reply;
  reply["link"] = toJson(link, descriptors);
  auto prepared = prepareAnswer(request->call, reply, descriptors);
  if (!prepared) {
    undo(request, std::move(link), std::move(prepared.error()));
    return;
  }
  object->describedBytes += bytes;
  const registry::Link& recorded = objects_.registry().addLink(*object, std::move(link));
  const std::string what = "attached program '" + recorded.program + "' of " + quoted(*object) + " to " +
                           recorded.kind + " " + recorded.target;
  spdlog::info("user {} (pid {}) {}", request->peer.uid, request->peer.pid, what);
  nlohmann::json event = eventOf(*object, request->peer.uid);
  event["linkId"] = recorded.id;
  events_.emit("attached", what, std::move(event));
  request->call.reply(std::move(*prepared));
}

/// Drops a link that is attached, but cannot stay.
void AttachMethod::undo(const std::shared_ptr<Request>& request, registry::Link link, loader::Failure failure) {
  registry::Object only;
  only.owner = request->peer.uid;
  only.connection = request->peer.connection;
  only.links.push_back(std::move(link));
  objects_.dismantle(std::move(only), [this, request, kept = std::move(failure)] { failed(request, kept); });
}

void AttachMethod::failed(const std::shared_ptr<Request>& request, const loader::Failure& failure) {
  const std::string what = "could not attach " + request->subject + ": " + loader::describe(failure);
  spdlog::info("user {} (pid {}) {}", request->peer.uid, request->peer.pid, what);
  events_.emit("attachFailed", what, std::move(request->event));
  answerFailure(request->call, failure);
}

} // namespace btfd::service
