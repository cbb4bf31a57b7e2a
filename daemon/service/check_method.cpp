#include "check_method.h"

#include "answers.h"
#include "load_request.h"

#include <memory>
#include <utility>

namespace btfd::service {

void CheckMethod::call(varlink::Call call) {
  if (call.parameters().at("objects").empty()) {
    call.invalidParameter("objects", "is empty: at least one object is needed");
    return;
  }
  const auto deadline = deadlineOf(call, config_);
  if (!deadline) {
    return;
  }
  Job job{.body = {},
          .descriptors = takeAllDescriptors(call),
          .party = partyOf(call.peer()),
          .deadline = *deadline,
          .done = {}};
  job.body["job"] = "check";
  job.body["parameters"] = call.takeParameters();
  const auto kept = std::make_shared<varlink::Call>(std::move(call));
  jobs_.submit(
      kept, std::move(job),
      [kept](JobSubmission::Outcome&& outcome) {
        if (outcome) {
          answer(*kept, outcome->body, AnswerDescriptors(false));
        } else {
          answerFailure(*kept, outcome.error());
        }
      },
      [] {});
}

} // namespace btfd::service
