#include "attach_method.h"

#include "answers.h"
#include "load_request.h"
#include "object_json.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace btfd::service {

/// An Attach under way.
struct AttachMethod::Request {
  varlink::Call call;
  varlink::Peer peer;
  std::uint64_t objectId = 0;
  bool wantDescriptors = false;
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
    descriptors.push_back(descriptor.duplicate());
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
  auto request = std::make_shared<Request>(Request{.call = std::move(call), .peer = peer});
  request->objectId = static_cast<std::uint64_t>(objectId);
  request->wantDescriptors = parameters.value("wantDescriptors", false);
  Job job{.body = std::move(body),
          .descriptors = std::move(descriptors),
          .party = partyOf(peer),
          .deadline = *deadline,
          .done = {}};
  jobs_.submit(
      std::shared_ptr<varlink::Call>(request, &request->call), std::move(job),
      [this, request](JobSubmission::Outcome&& outcome) {
        if (outcome) {
          attached(request, std::move(*outcome));
        } else {
          request->call.error(outcome.error().error, outcome.error().parameters);
        }
      },
      [] {});
}

void AttachMethod::attached(const std::shared_ptr<Request>& request, loader::ChannelMessage message) {
  auto link = takeLink(message);
  if (!link) {
    spdlog::error("{}", link.error().message);
    request->call.systemError(EPROTO);
    return;
  }
  registry::Object* object = objects_.registry().find(request->objectId);
  if (object == nullptr || !request->call.connected()) {
    // Unloaded, or the client went away, while the worker attached: the link has nobody to belong to.
    registry::Object orphan;
    orphan.owner = request->peer.uid;
    orphan.connection = request->peer.connection;
    orphan.links.push_back(std::move(*link));
    objects_.dismantle(std::move(orphan),
                       [request] { answerNoSuchObject(request->call, static_cast<std::int64_t>(request->objectId)); });
    return;
  }
  const registry::Link& recorded = objects_.registry().addLink(*object, std::move(*link));
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

} // namespace btfd::service
