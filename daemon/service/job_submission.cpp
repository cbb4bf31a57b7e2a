#include "job_submission.h"

#include <algorithm>
#include <utility>

namespace btfd::service {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct JobSubmission::Submitted {
  std::shared_ptr<varlink::Call> call;
  std::function<void(Outcome&&)> done;
  std::function<void()> abandoned;
  steady_clock::time_point start = steady_clock::now();
  milliseconds deadline{};
  /// Whether `abandoned` was called.
  bool over = false;
};

void JobSubmission::submit(std::shared_ptr<varlink::Call> call, Job job, std::function<void(Outcome&&)> done,
                           std::function<void()> abandoned) {
  const auto submitted = std::make_shared<Submitted>(
      Submitted{.call = std::move(call), .done = std::move(done), .abandoned = std::move(abandoned)});
  submitted->deadline = job.deadline;
  hand(submitted, std::move(job));
}

void JobSubmission::hand(const std::shared_ptr<Submitted>& submitted, Job job) {
  job.done = [this, submitted](Outcome outcome, Job done) { finished(submitted, std::move(outcome), std::move(done)); };
  const auto id = workers_.submit(std::move(job));
  submitted->call->onDisconnect([this, id, submitted] {
    workers_.cancel(id);
    submitted->over = true;
    submitted->abandoned();
  });
}

void JobSubmission::finished(const std::shared_ptr<Submitted>& submitted, Outcome outcome, Job job) {
  if (submitted->over) {
    return; // its outcome was on the way when the client went
  }
  submitted->call->onDisconnect({});
  if (outcome || outcome.error().error != loader::kNoKernelBtf) {
    submitted->done(std::move(outcome));
    return;
  }
  kernelBtf_.ensure([this, submitted, failure = std::move(outcome.error()),
                     kept = std::make_shared<Job>(std::move(job))](const auto& spec) mutable {
    if (spec) {
      const auto spent = std::chrono::duration_cast<milliseconds>(steady_clock::now() - submitted->start);
      kept->deadline = std::max(milliseconds{1}, submitted->deadline - spent);
      hand(submitted, std::move(*kept));
      return;
    }
    auto& message = failure.parameters["message"];
    message = message.template get<std::string>() + ", but " + spec.error().message;
    submitted->done(std::unexpected(std::move(failure)));
  });
}

} // namespace btfd::service
