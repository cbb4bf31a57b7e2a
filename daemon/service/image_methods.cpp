#include "image_methods.h"

#include "answers.h"

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

namespace btfd::service {

void ImageMethods::getBtf(varlink::Call call) {
  submit("btf", std::move(call), [](varlink::Call& answered, loader::ChannelMessage& message) {
    if (message.descriptors.size() != 1) {
      answered.systemError(EPROTO);
      return;
    }
    AnswerDescriptors descriptors(true);
    nlohmann::json reply = nlohmann::json::object();
    descriptors.add(reply, message.descriptors.front());
    answer(answered, {{"btfFileDescriptor", reply.at("fileDescriptor")}}, descriptors);
  });
}

void ImageMethods::disassemble(varlink::Call call) {
  submit("disassemble", std::move(call), [](varlink::Call& answered, loader::ChannelMessage& message) {
    answer(answered, message.body, AnswerDescriptors(false));
  });
}

void ImageMethods::submit(const std::string& kind, varlink::Call call,
                          std::function<void(varlink::Call&, loader::ChannelMessage&)> done) {
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
  Job job{.body = {{"job", kind}, {"ofClient", 0}, {"image", 0}, {"relocated", object->relocated}},
          .descriptors = std::move(*duplicates),
          .party = partyOf(call.peer()),
          .deadline = config_.limits.deadline,
          .done = {}};
  job.body["parameters"] = call.takeParameters();
  const auto kept = std::make_shared<varlink::Call>(std::move(call));
  jobs_.submit(
      kept, std::move(job),
      [kept, done = std::move(done)](JobSubmission::Outcome&& outcome) {
        if (outcome) {
          done(*kept, *outcome);
        } else {
          answerFailure(*kept, outcome.error());
        }
      },
      [] {});
}

} // namespace btfd::service
