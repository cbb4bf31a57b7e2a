#include "update_method.h"

#include "answers.h"
#include "base/text.h"
#include "object_json.h"

#include <bpf/bpf.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>
#include <vector>

namespace btfd::service {

namespace {

/// Whether the kernel's link runs this program: what became of an update whose worker was lost.
bool runs(const registry::Link& link, std::uint32_t programId) {
  struct bpf_link_info info{};
  __u32 length = sizeof(info);
  return !link.detachBySocketOption && link.descriptors.size() == 1 &&
         bpf_link_get_info_by_fd(link.descriptors.front().get(), &info, &length) == 0 && info.prog_id == programId;
}

} // namespace

/// An Update under way.
struct UpdateMethod::Request {
  varlink::Call call;
  varlink::Peer peer;
  std::uint64_t linkId = 0;
  std::uint64_t objectId = 0;
  std::string program;
  std::uint32_t programId = 0;
  std::chrono::milliseconds deadline{};
};

registry::Link* UpdateMethod::findLink(std::uint64_t id) {
  registry::Object* object = objects_.registry().findByLink(id);
  return object == nullptr ? nullptr : &*std::ranges::find(object->links, id, &registry::Link::id);
}

void UpdateMethod::call(varlink::Call call) {
  const auto linkId = call.parameters().at("linkId").get<std::int64_t>();
  const auto objectId = call.parameters().at("objectId").get<std::int64_t>();
  const registry::Object* owner = objects_.registry().findByLink(static_cast<std::uint64_t>(linkId));
  if (owner == nullptr) {
    answerNoSuchLink(call, linkId);
    return;
  }
  if (!policy_.mayChange(call.peer(), owner->owner)) {
    answerNotOwner(call, *owner);
    return;
  }
  if (findOwned(call, objectId, objects_.registry(), policy_) == nullptr) {
    return;
  }
  const auto deadline = deadlineOf(call, config_);
  if (!deadline) {
    return;
  }
  auto program = call.parameters().at("program").get<std::string>();
  const varlink::Peer peer = call.peer();
  auto request = std::make_shared<Request>(Request{.call = std::move(call),
                                                   .peer = peer,
                                                   .linkId = static_cast<std::uint64_t>(linkId),
                                                   .objectId = static_cast<std::uint64_t>(objectId),
                                                   .program = std::move(program),
                                                   .deadline = *deadline});
  if (auto begun = begin(request); !begun) {
    finished(request, begun);
  }
}

/// Hands the job over, after which `finished` is called.
loader::Outcome<void> UpdateMethod::begin(const std::shared_ptr<Request>& request) {
  const registry::Object& object = *objects_.registry().find(request->objectId);
  const registry::Program* program = object.findProgram(request->program);
  if (program == nullptr) {
    std::vector<std::string> known;
    std::ranges::transform(object.programs, std::back_inserter(known), &registry::Program::name);
    return loader::noSuchName("program", request->program, known);
  }
  request->programId = program->kernelId;
  const registry::Link& link = *findLink(request->linkId);
  if (&object != objects_.registry().findByLink(request->linkId) &&
      object.describedBytes + describedBytes(link) + request->program.size() > kDescriptionLimit) {
    return std::unexpected(loader::limitExceeded("with this link, the description of " + quoted(object) +
                                                     " would take more than " + std::to_string(kDescriptionLimit) +
                                                     " bytes",
                                                 "descriptionBytes", kDescriptionLimit));
  }
  return link.filter ? replaceFilter(request) : updateLink(request, link);
}

loader::Outcome<void> UpdateMethod::updateLink(const std::shared_ptr<Request>& request, const registry::Link& link) {
  if (link.descriptors.size() != 1) {
    nlohmann::json parameters;
    parameters["message"] = "link " + std::to_string(link.id) + " of kind " + link.kind +
                            " is not one link of the kernel's, so that it cannot be updated at once; attach the new "
                            "program, then detach it";
    parameters["program"] = request->program;
    parameters["errno"] = EOPNOTSUPP;
    parameters["errnoName"] = "EOPNOTSUPP";
    return std::unexpected(loader::Failure{"io.btfd.AttachFailed", std::move(parameters)});
  }
  const registry::Object& object = *objects_.registry().find(request->objectId);
  std::vector<BorrowedFd> held{link.descriptors.front(), object.findProgram(request->program)->descriptor};
  Job job{.body = {}, .descriptors = {}, .party = partyOf(request->peer), .deadline = request->deadline, .done = {}};
  job.body["job"] = "update";
  job.body["ofClient"] = 0;
  job.body["linkDescriptor"] = 0;
  job.body["programDescriptor"] = 1;
  job.body["isSocket"] = link.detachBySocketOption;
  job.body["program"] = request->program;
  job.body["kind"] = link.kind;
  job.body["target"] = link.target;
  if (const auto* old = objects_.registry().findByLink(link.id)->findProgram(link.program)) {
    job.body["oldProgramDescriptor"] = held.size();
    held.emplace_back(old->descriptor);
  }
  auto duplicates = varlink::duplicate(held);
  if (!duplicates) {
    return std::unexpected(failureOf(duplicates.error()));
  }
  job.descriptors = std::move(*duplicates);
  job.done = [this, request](const loader::Outcome<loader::ChannelMessage>& outcome, const Job&) {
    finished(request, outcome ? loader::Outcome<void>{} : std::unexpected(outcome.error()));
  };
  // Not cancelled if the client goes: the registry has to know what became of it.
  workers_.submit(std::move(job));
  return {};
}

loader::Outcome<void> UpdateMethod::replaceFilter(const std::shared_ptr<Request>& request) {
  UniqueFd program =
      BorrowedFd(objects_.registry().find(request->objectId)->findProgram(request->program)->descriptor).duplicate();
  if (!program) {
    return std::unexpected(failureOf(Error::fromErrno("no descriptor for a program", errno)));
  }
  objects_.filters().replace({.find = [this, id = request->linkId] { return findLink(id); },
                              .program = std::move(program),
                              .programId = request->programId,
                              .name = request->program},
                             partyOf(request->peer), request->deadline,
                             [this, request](const loader::Outcome<void>& outcome) { finished(request, outcome); });
  return {};
}

void UpdateMethod::finished(const std::shared_ptr<Request>& request, const loader::Outcome<void>& outcome) {
  const registry::Link* link = findLink(request->linkId);
  if (link == nullptr) {
    answerNoSuchLink(request->call, static_cast<std::int64_t>(request->linkId)); // detached meanwhile
    return;
  }
  const bool unknown = !outcome && outcome.error().error != "io.btfd.AttachFailed";
  if (outcome || (unknown && runs(*link, request->programId))) {
    updated(request);
    return;
  }
  spdlog::info("user {} (pid {}) could not update link {}: {}", request->peer.uid, request->peer.pid, request->linkId,
               loader::describe(outcome.error()));
  answerFailure(request->call, outcome.error());
}

void UpdateMethod::updated(const std::shared_ptr<Request>& request) {
  registry::Registry& registry = objects_.registry();
  registry::Object& before = *registry.findByLink(request->linkId);
  registry::Link link = std::move(*registry.takeLink(request->linkId));
  before.describedBytes -= describedBytes(link);
  registry::Object* object = registry.find(request->objectId);
  if (object == nullptr) {
    // Unloaded meanwhile: the link has nobody to belong to any more.
    registry::Object only;
    only.owner = before.owner;
    only.connection = before.connection;
    only.links.push_back(std::move(link));
    objects_.dismantle(std::move(only),
                       [request] { answerNoSuchObject(request->call, static_cast<std::int64_t>(request->objectId)); });
    return;
  }
  link.program = request->program;
  object->describedBytes += describedBytes(link);
  const registry::Link& recorded = registry.addLink(*object, std::move(link));
  const std::string what = "link " + std::to_string(recorded.id) + " to " + recorded.kind + " " + recorded.target +
                           " runs program '" + recorded.program + "' of " + quoted(*object);
  spdlog::info("user {} (pid {}): {}", request->peer.uid, request->peer.pid, what);
  nlohmann::json event = eventOf(*object, request->peer.uid);
  event["linkId"] = recorded.id;
  events_.emit("updated", what, std::move(event));
  AnswerDescriptors none(false);
  nlohmann::json reply;
  reply["link"] = toJson(recorded, none);
  request->call.reply(reply);
}

} // namespace btfd::service
