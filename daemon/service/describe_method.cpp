#include "describe_method.h"

#include "answers.h"
#include "object_json.h"

#include <cerrno>
#include <memory>
#include <utility>

namespace btfd::service {

namespace {

nlohmann::json describe(const registry::Object& object, bool withStatistics) {
  AnswerDescriptors none(false);
  nlohmann::json reply;
  reply["object"] = toJson(object, none);
  if (withStatistics) {
    auto& statistics = reply["statistics"] = nlohmann::json::object();
    for (const registry::Program& program : object.programs) {
      statistics[program.name] = RunStatistics::of(program);
    }
  }
  return reply;
}

} // namespace

void DescribeMethod::call(varlink::Call call) {
  const auto id = call.parameters().at("objectId").get<std::int64_t>();
  const registry::Object* object = registry_.find(static_cast<std::uint64_t>(id));
  if (object == nullptr) {
    answerNoSuchObject(call, id);
    return;
  }
  const bool withStatistics = call.parameters().value("statistics", false);
  if (withStatistics && !startCounting(call, *object)) {
    return;
  }
  const bool withRelocations = call.parameters().value("relocations", false);
  nlohmann::json reply = describe(*object, withStatistics);
  if (withRelocations && object->relocated) {
    describeRelocations(std::move(call), *object, std::move(reply));
    return;
  }
  if (withRelocations) {
    reply["relocations"] = nlohmann::json::array();
    reply["relocationsLeftOut"] = 0;
  }
  call.reply(reply);
}

/// Whether the kernel counts for the connection now; else the call was answered.
bool DescribeMethod::startCounting(varlink::Call& call, const registry::Object& object) {
  if (!policy_.mayChange(call.peer(), object.owner)) { // it costs everybody's programs time
    answerNotOwner(call, object);
    return false;
  }
  if (auto counting = statistics_.countFor(call.peer().connection); !counting) {
    call.invalidParameter("statistics", "cannot be had: " + counting.error().message);
    return false;
  }
  return true;
}

/// Has a worker say what became of them, as that takes a look at the object's BTF, which the client has made.
void DescribeMethod::describeRelocations(varlink::Call call, const registry::Object& object, nlohmann::json described) {
  Job job{
      .body = {}, .descriptors = {}, .party = partyOf(call.peer()), .deadline = config_.limits.deadline, .done = {}};
  job.descriptors.push_back(BorrowedFd(*object.image).duplicate());
  if (!job.descriptors.front()) {
    answerFailure(call, failureOf(Error{.message = "cannot duplicate a descriptor", .code = errno}));
    return;
  }
  job.body["job"] = "describe";
  job.body["ofClient"] = 0;
  job.body["image"] = 0;
  // As it is now: it may be gone when the worker answers.
  const auto reply = std::make_shared<nlohmann::json>(std::move(described));
  const auto kept = std::make_shared<varlink::Call>(std::move(call));
  jobs_.submit(
      kept, std::move(job),
      [kept, reply](JobSubmission::Outcome&& outcome) {
        if (!outcome) {
          answerFailure(*kept, outcome.error());
          return;
        }
        reply->update(outcome->body);
        answer(*kept, *reply, AnswerDescriptors(false));
      },
      [] {});
}

} // namespace btfd::service
