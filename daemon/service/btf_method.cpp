#include "btf_method.h"

#include "answers.h"

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

namespace btfd::service {

void BtfMethod::call(varlink::Call call) {
  const registry::Object* object =
      findOwned(call, call.parameters().at("objectId").get<std::int64_t>(), registry_, policy_);
  if (object == nullptr) {
    return;
  }
  const std::array<BorrowedFd, 1> held{*object->image};
  auto duplicates = varlink::duplicate(held);
  if (!duplicates) {
    answerFailure(call, failureOf(duplicates.error()));
    return;
  }
  Job job{.body = {{"job", "btf"}, {"ofClient", 0}, {"image", 0}, {"relocated", object->relocated}},
          .descriptors = std::move(*duplicates),
          .party = partyOf(call.peer()),
          .deadline = config_.limits.deadline,
          .done = {}};
  const auto kept = std::make_shared<varlink::Call>(std::move(call));
  jobs_.submit(
      kept, std::move(job),
      [kept](JobSubmission::Outcome&& outcome) {
        if (!outcome) {
          answerFailure(*kept, outcome.error());
          return;
        }
        if (outcome->descriptors.size() != 1) {
          kept->systemError(EPROTO);
          return;
        }
        AnswerDescriptors descriptors(true);
        nlohmann::json reply = nlohmann::json::object();
        descriptors.add(reply, outcome->descriptors.front());
        reply["btfFileDescriptor"] = reply["fileDescriptor"];
        reply.erase("fileDescriptor");
        answer(*kept, reply, descriptors);
      },
      [] {});
}

} // namespace btfd::service
